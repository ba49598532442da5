/** Owns: remembering which models had no room lately (a provider's 429 or 529, or our own rate limit), for the console's diagnosis. */
import { ModelError, type Model } from "./model.js";
import type { Models } from "./registry.js";

export interface Limited { readonly model: string; readonly atMs: number; readonly count: number; readonly message: string }

const MOST = 50;
const MAX_MESSAGE = 500;

/** `resolve` as before, with its models watched; `limited()` lists those that had no room, the latest first. */
export function watchLimits(resolve: Models["resolve"], nowMs: () => number): { readonly resolve: Models["resolve"]; readonly limited: () => Limited[] } {
  const seen = new Map<string, Limited>();
  const note = (full: string, error: unknown): void => {
    if (!(error instanceof ModelError) || !error.limited) return;
    const count = (seen.get(full)?.count ?? 0) + 1;
    seen.delete(full);
    seen.set(full, { model: full.slice(0, 200), atMs: nowMs(), count, message: error.message.slice(0, MAX_MESSAGE) });
    const [oldest] = seen.keys();
    if (seen.size > MOST && oldest !== undefined) seen.delete(oldest);
  };
  return {
    resolve: (full) => {
      const { model, name } = resolve(full);
      const watched: Model = {
        provider: model.provider, reserveUsd: (request) => model.reserveUsd(request),
        answer: async (request) => {
          try {
            return await model.answer(request);
          } catch (error) {
            note(full, error);
            throw error;
          }
        },
      };
      return { model: watched, name };
    },
    limited: () => [...seen.values()].reverse(),
  };
}
