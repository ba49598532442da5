/**
 * Owns: following the gateway's stream of a session. A cut connection is taken up again with Last-Event-ID, so that no entry
 * is missed or seen twice; what the server refuses (4xx) ends it.
 */
import { setTimeout as pause } from "node:timers/promises";
import { createParser } from "eventsource-parser";
import { z } from "zod";
import { failureOf, type Client } from "./client.js";
import { CliError, EXIT } from "./exit.js";
import type { StoryEntry } from "./story.js";

const Entry = z.object({ rev: z.number(), atMs: z.number(), events: z.array(z.unknown()) });
const Delta = z.object({ runId: z.string(), step: z.number(), text: z.string() });
const Gap = z.object({ fromRev: z.number(), toRev: z.number() });
const End = z.object({ runId: z.string(), outcome: z.string(), code: z.string().optional(), deadLetterId: z.string().optional() });

export interface StreamSink {
  journal(entry: StoryEntry): "go on" | "stop";
  delta(delta: z.infer<typeof Delta>): void;
  gap(gap: z.infer<typeof Gap>): void;
  reconnecting(reason: string): void;
}

export interface Follow { readonly sessionId: string; readonly afterRev: number; readonly runId?: string | undefined; readonly timeoutMs: number | undefined; readonly interrupted: AbortSignal; readonly retryMs?: number }

const LONGEST_PAUSE_MS = 5_000;

/** Runs until the run's `end`, until the sink says stop, or until --timeout (`timeout`). Throws CliError. */
export async function followSession(gateway: Client, follow: Follow, sink: StreamSink): Promise<z.infer<typeof End> | "stopped" | "timeout"> {
  const deadline = follow.timeoutMs === undefined ? new AbortController().signal : AbortSignal.timeout(follow.timeoutMs);
  const signal = AbortSignal.any([follow.interrupted, deadline]);
  const state: Position = { lastRev: follow.afterRev, ended: undefined };
  const firstPauseMs = follow.retryMs ?? 500;
  let pauseMs = firstPauseMs;
  for (;;) {
    const before = state.lastRev;
    let reason = "the connection ended";
    try {
      await readOnce(gateway, follow, state, sink, signal);
    } catch (error) {
      if (follow.interrupted.aborted) throw new CliError(EXIT.interrupted, "interrupted", "interrupted");
      if (!deadline.aborted) reason = transient(failureOf(error, follow.interrupted, "the gateway"));
    }
    if (state.ended !== undefined) return state.ended;
    if (deadline.aborted) return "timeout";
    pauseMs = state.lastRev > before ? firstPauseMs : Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    sink.reconnecting(reason);
    await pause(pauseMs, undefined, { signal }).catch(() => undefined);
  }
}

interface Position { lastRev: number; ended: z.infer<typeof End> | "stopped" | undefined }

async function readOnce(gateway: Client, follow: Follow, state: Position, sink: StreamSink, signal: AbortSignal): Promise<void> {
  const cut = new AbortController();
  const query = new URLSearchParams({ wait: "1", ...(follow.runId === undefined ? {} : { until: `run:${follow.runId}` }) }).toString();
  const response = await gateway.open(`/v1/sessions/${encodeURIComponent(follow.sessionId)}/stream?${query}`, state.lastRev === 0 ? {} : { "last-event-id": String(state.lastRev) }, AbortSignal.any([signal, cut.signal]));
  const parser = createParser({
    onEvent: ({ event, data }) => {
      if (state.ended !== undefined) return;
      if (event === "journal") {
        const entry = read(Entry, data);
        if (entry === undefined || entry.rev <= state.lastRev) return;
        state.lastRev = entry.rev;
        if (sink.journal(entry) === "stop") state.ended = "stopped";
      } else if (event === "delta") {
        const delta = read(Delta, data);
        if (delta !== undefined) sink.delta(delta);
      } else if (event === "gap") {
        const gap = read(Gap, data);
        if (gap !== undefined) sink.gap(gap);
      }
      else if (event === "end") state.ended = read(End, data) ?? "stopped";
    },
  });
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    parser.feed(decoder.decode(chunk as Uint8Array, { stream: true }));
    if (state.ended !== undefined) break;
  }
  cut.abort();
}

/** Why to try again; what trying again cannot mend is thrown. */
export function transient(error: CliError): string {
  const passing = error.exitCode === EXIT.unreachable || error.exitCode === EXIT.timeout || error.document?.retryable === true;
  if (!passing) throw error;
  return error.message;
}

function read<T>(schema: z.ZodType<T>, data: string): T | undefined {
  try {
    return schema.parse(JSON.parse(data));
  } catch {
    return undefined; // of a newer server
  }
}
