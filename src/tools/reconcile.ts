/** Owns: asking a tool "did key K happen?". A throw, silence or nonsense means: it cannot tell. */
import type { Reconciled, Tool, ToolContext } from "../agent/definition.js";
import type { WorkerClock } from "./ports.js";

const CANNOT_TELL: Reconciled = { happened: "unknown" };

/** Never throws. A tool without `reconcile` cannot tell. */
export async function askReconcile(
  tool: Tool, args: unknown, contextWith: (signal: AbortSignal) => ToolContext, limits: { readonly clock: WorkerClock; readonly timeoutMs: number },
): Promise<Reconciled> {
  const { reconcile } = tool;
  if (reconcile === undefined) return CANNOT_TELL;
  const abort = new AbortController();
  let cancel: () => void = () => undefined;
  const silence = new Promise<Reconciled>((resolve) => {
    cancel = limits.clock.after(limits.timeoutMs, () => {
      abort.abort(new Error("reconcile took too long"));
      resolve(CANNOT_TELL);
    });
  });
  const answer = Promise.resolve().then(() => reconcile(args, contextWith(abort.signal))).then(wellFormed, () => CANNOT_TELL);
  const first = await Promise.race([answer, silence]);
  cancel();
  return first;
}

/** What users write may answer anything. */
function wellFormed(answer: unknown): Reconciled {
  const { happened, output } = (answer ?? {}) as { happened?: unknown; output?: unknown };
  if (happened === true) return { happened, output };
  return happened === false ? { happened } : CANNOT_TELL;
}
