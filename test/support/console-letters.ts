/** Owns: letters in a console of the unit tests, and redrives of them, as the tests of the console's redrive say them. */
import { expect } from "vitest";
import { serializeEnvelope, type Envelope } from "../../src/contracts/cloudevent.js";
import { DEAD_LETTERED, type DeadLetter } from "../../src/contracts/messages.js";
import { messageOf, START_MS, type ConsoleWorld } from "./console-fakes.js";

/** An event that is dead in most letters. */
export function event(id: string, more: Partial<Envelope> = {}): Envelope {
  return { specversion: "1.0", id, source: "/shop", type: "com.shop.order.placed", subject: "ord-1", tenant: "default", data: '{"total":9007199254740993}', ...more };
}

type Reply = ReturnType<ConsoleWorld["call"]>;
interface Command { readonly id: string; readonly type: string; readonly subject: string | undefined; readonly causationid: string | undefined; readonly deadLetterId: string; readonly event: string; readonly as: string; readonly redrive: number }
export interface Letters {
  /** A new letter in the console; its id. */
  readonly dead: (overrides?: Partial<DeadLetter>) => Promise<string>;
  readonly one: (id: string, body?: object, key?: string) => Reply;
  readonly many: (body: object, key?: string) => Reply;
  /** What was sent to sessions. */
  readonly commands: () => Command[];
}

export function lettersIn(world: () => ConsoleWorld, operator: () => string): Letters {
  let serial = 0;
  return {
    async dead(overrides = {}) {
      serial += 1;
      const letter: DeadLetter = {
        deadLetterId: `dl_${String(serial)}`, kind: "event", reason: "mailbox_full", message: `${String(serial)} events wait for this session; the limit is 256`, topic: "agent.tasks.incoming", app: "sessions", tries: 1,
        tenant: "default", sessionId: "ord-1", payload: serializeEnvelope(event(`e${String(serial)}`)), payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS, ...overrides,
      };
      expect(await world().console.handleDeadLetter(messageOf(DEAD_LETTERED, letter))).toBe("SUCCESS");
      return letter.deadLetterId;
    },
    one: (id, body = {}, key = operator()) => world().call("POST", `/v1/dead-letters/${id}/redrive`, { key, body: { reason: "again", ...body } }),
    many: (body, key = operator()) => world().call("POST", "/v1/dead-letters/redrive", { key, body: { reason: "again", ...body } }),
    commands: () => world().tasks.sent.map((sent) => ({ id: sent.id, type: sent.type, subject: sent.subject, causationid: sent.causationid, ...JSON.parse(sent.data) as Pick<Command, "deadLetterId" | "event" | "as" | "redrive"> })),
  };
}
