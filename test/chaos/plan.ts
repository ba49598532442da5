/** Owns: which faults a run does, in which order, at which moments, on which copies, with which work: all of it from the seed. Pure. */
import { randomFrom } from "../support/kills.js";
import { planBurst, planProbe, type PlannedSession } from "./stories.js";
import { APP_COPIES, CATALOG, type FaultKind } from "./catalog.js";
import type { ChaosOptions, ChaosProfile } from "./options.js";

export interface PlannedRound {
  readonly round: number;
  readonly fault: FaultKind;
  /** Events that are accepted before it strikes. */
  readonly afterEvents: number;
  /** For the choice among copies, the direction of a jump, and the like. */
  readonly dice: number;
  readonly sessions: readonly PlannedSession[];
  /** More bursts, for a fault that has several parts. */
  readonly waves: readonly (readonly PlannedSession[])[];
  readonly probe: PlannedSession;
}

export interface ChaosPlan { readonly rounds: readonly PlannedRound[]; readonly skipped: readonly string[]; /** Faults wait for so many events in flight. */ readonly inFlight?: number }

/** Some have ended before the last is sent. */
const EVENTS_PER_IN_FLIGHT = 2;

type Wishes = Pick<ChaosOptions, "seed" | "minutes" | "profile" | "only"> & Partial<Pick<ChaosOptions, "rounds" | "inFlight">>;

/** Faults of a profile that `only` names; all where it names none. */
export function faultsOf(profile: ChaosProfile, only: readonly string[]): FaultKind[] {
  return CATALOG.filter((fault) => (fault.profile ?? profile) === profile && (only.length === 0 || only.some((name) => isMeant(name, fault.name))));
}

/** A whole name means that fault alone, a beginning all that begin so. */
function isMeant(name: string, fault: string): boolean {
  return CATALOG.some((known) => known.name === name) ? fault === name : fault.startsWith(name);
}

/** So many rounds, or until the minutes are full, by how long a fault takes as a rule: the clock of the machine has no say. */
export function planOf({ seed, minutes, profile, only, rounds: wanted, inFlight }: Wishes): ChaosPlan {
  const random = randomFrom(seed);
  const chosen = faultsOf(profile, only);
  const rounds: PlannedRound[] = [];
  for (let leftS = minutes * 60, queue: FaultKind[] = []; chosen.length > 0; ) {
    if (queue.length === 0) queue = chosen.map((fault) => ({ fault, at: random() })).sort((a, b) => a.at - b.at).map(({ fault }) => fault);
    const fault = queue.shift()!;
    leftS -= fault.takesS;
    if (wanted === undefined ? leftS < 0 && rounds.length > 0 : rounds.length === wanted) break;
    rounds.push(planRound(rounds.length + 1, fault, { seed, random, inFlight }));
  }
  return { ...(inFlight === undefined ? {} : { inFlight }), rounds, skipped: chosen.map((fault) => fault.name).filter((name) => !rounds.some((round) => round.fault.name === name)) };
}

function planRound(round: number, fault: FaultKind, { seed, random, inFlight = 0 }: { seed: number; random: () => number; inFlight?: number | undefined }): PlannedRound {
  const prefix = `c${String(seed)}-r${String(round)}`;
  const sessions = planBurst(prefix, random);
  for (let more = 1; countEvents(sessions) < EVENTS_PER_IN_FLIGHT * inFlight; more += 1) sessions.push(...planBurst(`${prefix}-${String(more)}`, random));
  const waves = fault.action.do === "roll" ? APP_COPIES.map((name) => planBurst(`${prefix}-${name}`, random)) : [];
  return { round, fault, afterEvents: 8 + Math.floor(random() * 16), dice: random(), sessions, waves, probe: planProbe(`${prefix}-probe`, fault.probe) };
}

function countEvents(sessions: readonly PlannedSession[]): number { return sessions.reduce((sum, session) => sum + session.events.length, 0); }
