import { describe, expect, it } from "vitest";
import type { JournalEntry, SessionEvent } from "../../../src/contracts/journal.js";
import { scaleOf, spansOf, sumsOf } from "../../../web/src/lib/spans.js";
import { recordOf } from "../../support/console-fakes.js";

const at = (rev: number, atMs: number, ...events: SessionEvent[]): JournalEntry => ({ v: 1, actorId: "a", rev, commitId: "c", atMs, command: "x", host: "h", digest: "d", events });
const DAY = 86_400_000;
const call = { callId: "c1", providerCallId: "c1", tool: "refund", args: "{}", argsDigest: "sha256:0", effects: "once" as const, critical: false, timeoutMs: 1, maxTries: 1 };
const JOURNAL = [
  at(1, 0, { type: "EventReceived", key: "k", source: "s", id: "1", eventType: "prompt", mode: "enqueue", runId: "r", correlationId: "r", data: { text: "", truncated: false } }),
  at(2, 100, { type: "RunStarted", runId: "r", key: "k", eventRev: 1, input: "hi", requestedBy: "ann", correlationId: "r" }, { type: "ModelCallStarted", runId: "r", step: 1, attempt: 1, host: "h", reservedUsd: 0 }),
  at(3, 1_100, { type: "ModelAnswered", runId: "r", step: 1, attempt: 1, model: "m", text: "", calls: [call], stop: "tool_use", usage: { inputTokens: 5, outputTokens: 2, cacheReadTokens: 0, cacheWriteTokens: 0 }, costUsd: 0.01 }, { type: "ApprovalOpened", record: recordOf({ approvalId: "apr" }) }),
  at(4, 1_100 + DAY, { type: "DecisionRecorded", approvalId: "apr", decisionId: "d", kind: "approve", principal: { id: "ann", class: "person", roles: [] }, via: "web", final: true }, { type: "ToolCallDispatched", callId: "c1", try: 1, deadlineAtMs: 0, grantIssuedAtMs: 0, grantExpiresAtMs: 0 }),
  at(5, 1_200 + DAY, { type: "ToolCallClaimed", callId: "c1", try: 1, worker: "w" }),
  at(6, 1_700 + DAY, { type: "ToolResultRecorded", callId: "c1", providerCallId: "c1", tool: "refund", status: "succeeded", content: { text: "", truncated: false } }, { type: "ModelCallStarted", runId: "r", step: 2, attempt: 1, host: "h", reservedUsd: 0 }),
];

describe("a waterfall", () => {
  const spans = spansOf(JOURNAL);
  const nowMs = 2_000 + DAY;

  it("has the queue, the model, the person, the worker and the tool, each with its own time", () => {
    expect(spans.map(({ kind, label, startMs, endMs, note }) => [kind, label, (endMs ?? nowMs) - startMs, note])).toEqual([
      ["queue", "prompt", 100, ""], ["model", "step 1", 1_000, "5 tokens in, 2 out, $0.0100"], ["human", "refund", DAY, "approve by ann"], ["tool_wait", "refund", 100, ""], ["tool_run", "refund", 500, "succeeded"], ["model", "step 2", 300, ""],
    ]);
    expect(sumsOf(spans, nowMs)).toEqual([{ kind: "queue", ms: 100 }, { kind: "model", ms: 1_300 }, { kind: "tool_wait", ms: 100 }, { kind: "tool_run", ms: 500 }, { kind: "human", ms: DAY }]);
  });

  it("draws a day of waiting shorter, says so, and keeps the order of everything", () => {
    const { at: place, squeezed } = scaleOf(spans, nowMs);
    expect(squeezed.map((cut) => cut.ms)).toEqual([DAY]);
    const places = [0, 100, 1_100, 1_100 + DAY, 1_200 + DAY, 1_700 + DAY, nowMs].map(place);
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places.at(0)).toBe(0);
    expect(places.at(-1)).toBe(1);
    expect((places[2] ?? 0) - (places[1] ?? 0), "the model's second is still to be seen").toBeGreaterThan(0.1);
  });

  it("of nothing, or of one moment, divides by nothing", () => {
    expect(scaleOf([], 5).at(3)).toBe(0);
    expect(scaleOf(spansOf(JOURNAL.slice(0, 1)), 0).at(0)).toBe(0);
  });
});
