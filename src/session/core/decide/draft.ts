/**
 * Owns: one turn in the making. What a rule emits takes effect at once on `state` (through `evolve`, so that a decision
 * never believes in another state than the fold), and the next rule goes on from there. Lives for one `decide` only.
 */
import type { SessionEvent } from "../../../contracts/journal.js";
import type { ProblemCode } from "../../../contracts/problems.js";
import type { CommandBase, Decision } from "../command.js";
import { evolve } from "../evolve.js";
import { callOf, modelOf, runOf, type EntryAt } from "../parts.js";
import type { ModelCall, OpenSession, Run, SessionState, ToolCall } from "../state.js";

export class Draft {
  readonly events: SessionEvent[] = [];
  /** The entry that this turn will become. */
  readonly entry: EntryAt;
  readonly command: CommandBase;
  state: SessionState;

  constructor(state: SessionState, command: CommandBase) {
    this.state = state;
    this.command = command;
    this.entry = { rev: state.rev + 1, atMs: command.atMs };
  }

  emit(event: SessionEvent): void {
    this.state = evolve(this.state, event, this.entry);
    this.events.push(event);
  }

  get atMs(): number { return this.command.atMs; }

  /** The opened session; rules for NEW sessions emit SessionOpened first. */
  get session(): OpenSession {
    if (this.state.status === "NEW") throw new Error("the session has not been opened; expected SessionOpened to be emitted first");
    return this.state;
  }

  get run(): Run | undefined { return runOf(this.state); }
  get model(): ModelCall | undefined { return modelOf(this.state); }

  call(callId: string): ToolCall | undefined { return callOf(this.run, callId); }

  accept(): Decision { return { ok: true, events: this.events }; }
  /** Refused; what was emitted so far is recorded all the same. */
  refuse(code: ProblemCode, message: string): Decision { return { ok: false, code, message, events: this.events }; }
}

/** Optional members without `undefined` in them: absent is absent in the journal. */
export function given<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return value === undefined ? {} : { [key]: value } as { [P in K]: V };
}

export function clip(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}

/** Who asked, where nobody is named. */
export const ANONYMOUS = "anonymous";

/** Why something does not count. */
export type Objection = readonly [code: ProblemCode, message: string];

export const plain = (text: string) => ({ text, truncated: false });
