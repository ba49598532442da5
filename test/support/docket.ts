/**
 * Owns: a running Docket for e2e tests: the real stack, the outside systems of the recorded day, an API client, and
 * the checks that every test ends with (fold(journal) = state, one outcome per event).
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import type { AppId } from "../../src/contracts/channels.js";
import { Accepted, ApprovalPage, DeadLetterPage, EventOutcome, JournalPage, SessionView, type ApprovalListItem } from "../../src/contracts/api.js";
import type { JournalEntry, SessionEvent } from "../../src/contracts/journal.js";
import { eventually, startTestStack, type TestStack, type TestStackOptions } from "./cluster.js";
import { startAcme, type Acme } from "./acme.js";

export interface Docket {
  readonly test: TestStack;
  readonly dataDir: string;
  readonly acme: Acme;
  /** GET or POST on the gateway, as the development operator. */
  gateway(method: "GET" | "POST", path: string, body?: unknown, headers?: Record<string, string>): Promise<{ status: number; body: unknown }>;
  console(method: "GET" | "POST", path: string, body?: unknown): Promise<{ status: number; body: unknown }>;
  prompt(sessionId: string, text: string, options?: { agent?: string; mode?: string; headers?: Record<string, string> }): Promise<Accepted>;
  cloudEvent(event: object): Promise<Accepted>;
  ended(accepted: Accepted, timeoutMs?: number): Promise<EventOutcome>;
  session(sessionId: string): Promise<SessionView>;
  journal(sessionId: string): Promise<JournalEntry[]>;
  openApproval(sessionId: string, timeoutMs?: number): Promise<ApprovalListItem>;
  decide(item: ApprovalListItem, kind: string, extra?: object): Promise<{ status: number; body: unknown }>;
  deadLetters(): Promise<z.infer<typeof DeadLetterPage>["items"]>;
  /** Calls of scripted models so far. */
  modelCalls(sessionId?: string): { sessionId: string; runId: string; step: number; attempt: number }[];
  /** Sessions that this test file used; each is checked at the end. */
  readonly used: Set<string>;
  readonly apiKey: string;
  close(): Promise<void>;
}

/** Starts everything. Takes about ten seconds. */
export async function startDocket(options: TestStackOptions = {}): Promise<Docket> {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "docket-e2e-"));
  const acme = await startAcme({ port: 0, file: join(dataDir, "acme.jsonl") });
  const callLog = join(dataDir, "model-calls.jsonl");
  const extra = (app: AppId | "all"): Record<string, string> => ({ ...options.extraEnv?.[app] });
  const test = await startTestStack({
    ...options, dataDir,
    extraEnv: {
      ...options.extraEnv,
      sessions: { DOCKET_MODEL_CALL_LOG: callLog, ...extra("sessions") },
      tools: { DOCKET_TOOL_SECRET_ACME_URL: acme.url, ...extra("tools") },
      gateway: { DOCKET_SWEEP_AFTER_MS: "3000", ...extra("gateway") },
      console: extra("console"),
    },
  });
  const apiKey = readFileSync(join(dataDir, "keys", "dev-api-key.txt"), "utf8").trim();
  const used = new Set<string>();
  const call = (base: string | undefined) => async (method: "GET" | "POST", path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const reply = await fetch(`${base ?? ""}${path}`, {
      method, headers: { authorization: `Bearer ${apiKey}`, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const text = await reply.text();
    return { status: reply.status, body: text === "" ? undefined : JSON.parse(text) as unknown };
  };
  const gateway = call(test.stack.urls.gateway);
  const console_ = call(test.stack.urls.console);
  const expectStatus = (reply: { status: number; body: unknown }, status: number, what: string): unknown => {
    if (reply.status !== status) throw new Error(`${what}: expected ${String(status)}, got ${String(reply.status)} ${JSON.stringify(reply.body)}`);
    return reply.body;
  };
  const at = (sessionId: string): string => `/v1/sessions/${encodeURIComponent(sessionId)}`;
  const accepted = (reply: { status: number; body: unknown }): Accepted => {
    const answer = Accepted.parse(expectStatus(reply, 202, "accepting an event"));
    used.add(answer.sessionId);
    return answer;
  };
  return {
    test, dataDir, acme, gateway, console: console_, used, apiKey,
    prompt: async (sessionId, text, o = {}) => accepted(await gateway("POST", `${at(sessionId)}/events`, { text, ...(o.agent === undefined ? {} : { agent: o.agent }), ...(o.mode === undefined ? {} : { mode: o.mode }) }, o.headers)),
    cloudEvent: async (event) => accepted(await gateway("POST", "/v1/events", event, { "content-type": "application/cloudevents+json" })),
    ended: (answer, timeoutMs = 30_000) => eventually(`the end of event ${answer.eventId} in session ${answer.sessionId}`, async () => {
      const outcome = EventOutcome.parse(expectStatus(await gateway("GET", `${at(answer.sessionId)}/events/${answer.eventKey}`), 200, "reading an outcome"));
      return outcome.state === "ended" ? outcome : undefined;
    }, timeoutMs),
    session: async (sessionId) => SessionView.parse(expectStatus(await gateway("GET", at(sessionId)), 200, "reading a session")),
    journal: async (sessionId) => {
      const entries: JournalEntry[] = [];
      for (;;) {
        const page = JournalPage.parse(expectStatus(await console_("GET", `${at(sessionId)}/journal?after=${String(entries.at(-1)?.rev ?? 0)}&limit=200`), 200, "reading a journal"));
        entries.push(...page.entries);
        if (page.entries.length === 0 || (entries.at(-1)?.rev ?? 0) >= page.headRev) return entries;
      }
    },
    openApproval: (sessionId, timeoutMs = 20_000) => eventually(`an open approval of session ${sessionId} in the console`, async () => {
      const page = ApprovalPage.parse(expectStatus(await console_("GET", "/v1/approvals?state=open&limit=200"), 200, "listing approvals"));
      return page.items.find((item) => item.pending.sessionId === sessionId);
    }, timeoutMs),
    decide: (item, kind, more = {}) => console_("POST", `/v1/approvals/${item.pending.record.approvalId}/decisions`, { kind, version: item.pending.record.version, argsDigest: item.pending.record.argsDigest, ...more }),
    deadLetters: async () => DeadLetterPage.parse(expectStatus(await console_("GET", "/v1/dead-letters?limit=200"), 200, "listing dead letters")).items,
    modelCalls: (sessionId) => readLines(callLog).map((line) => line as { sessionId: string; runId: string; step: number; attempt: number }).filter((line) => sessionId === undefined || line.sessionId === sessionId),
    close: async () => {
      await test.close();
      await acme.stop();
      if (options.dataDir === undefined && process.env["DOCKET_KEEP_TEST_DATA"] !== "1") rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

/** Events of one type in a journal. */
export function eventsOf<T extends SessionEvent["type"]>(entries: readonly JournalEntry[], type: T): Extract<SessionEvent, { type: T }>[] {
  return entries.flatMap((entry) => entry.events).filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
}

/** A fresh session id, so that tests share nothing. */
export function freshSession(prefix: string): string {
  return `${prefix}-${Math.random().toString(36).slice(2, 10)}`;
}

export { eventually };

function readLines(file: string): unknown[] {
  try {
    return readFileSync(file, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as unknown);
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return [];
    throw error;
  }
}
