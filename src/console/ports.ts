/** Owns: what the console needs of the outside. Adapters over the sidecar are in src/dapr, handed in by src/main. */
import type { DecisionOutcome, EventOutcome, JournalPage, SessionView } from "../contracts/api.js";
import type { Envelope } from "../contracts/cloudevent.js";
import type { DecisionClaims } from "../contracts/decisions.js";
import type { Authenticated } from "../platform/apikeys.js";
import type { Clock } from "../platform/clock.js";
import type { Logger } from "../platform/log.js";

/** Reads sessions through their actors: the truth. Every method throws Problem `actor_unavailable`. */
export interface Sessions {
  readSession(actorId: string): Promise<SessionView | undefined>;
  /** Entries with rev > afterRev, in order, `limit` at most; undefined where there is no such session. */
  readJournal(actorId: string, afterRev: number, limit: number): Promise<JournalPage | undefined>;
  readDecision(actorId: string, decisionId: string): Promise<DecisionOutcome>;
  readOutcome(actorId: string, key: string): Promise<EventOutcome>;
}

/** Publishes to one channel. Returning means that the broker has it; throws Problem `broker_unavailable`. */
export interface Publisher { publish(envelope: Envelope): Promise<void> }

/** Signs as the console (DESIGN 5). */
interface DecisionSigner { sign(claims: DecisionClaims): Promise<string> }

/** Reads an Authorization header. Throws Problem `unauthenticated`. */
export interface Authenticator { authenticate(header: string | undefined): Authenticated }

export interface ConsoleDeps {
  readonly sessions: Sessions;
  readonly tasks: Publisher;
  readonly decisions: Publisher;
  readonly signer: DecisionSigner;
  readonly authenticator: Authenticator;
  readonly clock: Clock;
  readonly logger: Logger;
}
