/**
 * Owns: which session, run and trace a log line is about. Whoever handles something says so once; each later line that names the actor,
 * run or call gets what is missing. Bounded; what is forgotten is only missing in lines.
 */
export interface LogContext { readonly tenant?: string; readonly sessionId?: string; readonly runId?: string; readonly traceId?: string }

const MAX = 4_000;
/** By call id, run id and actor id. */
const known = new Map<string, LogContext>();

/** Lines about any of these ids carry `context` from now on. */
export function logsAbout(ids: readonly (string | undefined)[], context: LogContext): void {
  for (const id of ids) {
    if (id === undefined) continue;
    const before = known.get(id);
    known.delete(id);
    // Another run of the session is another trace.
    const kept = before?.runId !== undefined && context.runId !== undefined && before.runId !== context.runId ? { ...before, traceId: undefined } : before;
    known.set(id, { ...defined(kept ?? {}), ...defined(context) });
  }
  for (const oldest of known.keys()) {
    if (known.size <= MAX) break;
    known.delete(oldest);
  }
}

/** The fields with what is known of their ids; what they say themselves stands. */
export function withContext(fields: Record<string, unknown>): Record<string, unknown> {
  const { callId, runId, actorId } = fields;
  for (const id of [callId, runId, actorId]) {
    const context = typeof id === "string" ? known.get(id) : undefined;
    if (context !== undefined) return { ...context, ...fields };
  }
  return fields;
}

function defined(context: { readonly [K in keyof LogContext]: LogContext[K] | undefined }): LogContext {
  return Object.fromEntries(Object.entries(context).filter(([, value]) => value !== undefined));
}
