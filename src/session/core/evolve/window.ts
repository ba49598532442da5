/** Owns: the prompt window's bookkeeping: which rounds the model still sees, and how large they are. */
import { MAX_ROUNDS } from "../limits.js";
import { withCommon, type Parts } from "../parts.js";

export function openRound(parts: Parts, rev: number, bytes: number): Parts {
  const rounds = [...parts.common.window.rounds, { rev, bytes }].slice(-MAX_ROUNDS);
  return withCommon(parts, { window: { fromRev: rounds[0]?.rev ?? rev, rounds } });
}

/** Text was added to the latest round. */
export function growRound(parts: Parts, text: string): Parts {
  const { fromRev, rounds } = parts.common.window;
  const last = rounds.at(-1);
  if (last === undefined || text.length === 0) return parts;
  return withCommon(parts, { window: { fromRev, rounds: [...rounds.slice(0, -1), { rev: last.rev, bytes: last.bytes + Buffer.byteLength(text) }] } });
}

/** The latest round never reached a model: it is no part of the conversation. */
export function dropLastRound(parts: Parts): Parts {
  const { fromRev, rounds } = parts.common.window;
  return withCommon(parts, { window: { fromRev, rounds: rounds.slice(0, -1) } });
}

export function advanceTo(parts: Parts, fromRev: number): Parts {
  return withCommon(parts, { window: { fromRev, rounds: parts.common.window.rounds.filter((round) => round.rev >= fromRev) } });
}
