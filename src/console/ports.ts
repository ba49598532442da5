/** Owns: what the console needs of the outside. Adapters over the sidecar are in src/dapr, handed in by src/main. */
import type { DecisionOutcome, EventOutcome, JournalPage, SessionView } from "../contracts/api.js";
import type { AuditHeadClaims } from "../contracts/audit.js";
import type { Envelope } from "../contracts/cloudevent.js";
import type { DecisionClaims } from "../contracts/decisions.js";
import type { ButtonClaims, LinkClaims } from "../contracts/notices.js";
import type { ToolManifest } from "../contracts/tools.js";
import type { Authenticated } from "../platform/apikeys.js";
import type { Clock } from "../platform/clock.js";
import type { Logger } from "../platform/log.js";
import type { Policy } from "../session/core/policy/policy.js";

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

/** Signs heads of the audit as the console, and checks signed ones. `verify` throws Problem `bad_signature`. */
interface AuditSigner { sign(claims: AuditHeadClaims): Promise<string>; verify(jws: string, nowMs: number): Promise<AuditHeadClaims> }

/** Signs what the console hands out in notices, and checks it when it comes back. The verifiers throw Problem `bad_signature`. */
export interface NoticeSigner {
  signLink(claims: LinkClaims): Promise<string>;
  verifyLink(jws: string, nowMs: number): Promise<LinkClaims>;
  signButton(claims: ButtonClaims): Promise<string>;
  verifyButton(jws: string, nowMs: number): Promise<ButtonClaims>;
}

export interface Authenticator {
  /** Reads an Authorization header. Throws Problem `unauthenticated`. */
  authenticate(header: string | undefined): Authenticated;
  /** Whom a key stands for that was authenticated before; undefined once it is revoked or has expired. */
  recall(keyId: string): Authenticated | undefined;
  /** Whether the key that `npm run dev` makes is known: everybody who can read a file here can do everything. */
  development(): boolean;
}

/** An agent as people may see it: no code. */
export interface AgentInfo {
  readonly name: string; readonly version: string; readonly description: string; readonly instructions: string; readonly model: string;
  readonly tools: readonly string[]; readonly triggers: readonly string[]; readonly limits: Readonly<Record<string, number>>;
}

/** What is installed, as this process read it at its start. */
export interface Installed { readonly agents: readonly AgentInfo[]; readonly tools: readonly ToolManifest[]; readonly policy: Policy }

/** Something the console depends on. `check` gives a line for people, or throws. */
export interface Part { readonly name: string; readonly about: string; check(): Promise<string> }

export interface ConsoleDeps {
  readonly sessions: Sessions;
  readonly tasks: Publisher;
  readonly decisions: Publisher;
  /** For letters, to the apps that keep them. */
  readonly receipts: Publisher;
  readonly signer: DecisionSigner;
  readonly auditSigner: AuditSigner;
  readonly noticeSigner: NoticeSigner;
  readonly authenticator: Authenticator;
  readonly installed: Installed;
  /** For the System page. */
  readonly parts: readonly Part[];
  readonly clock: Clock;
  readonly logger: Logger;
}
