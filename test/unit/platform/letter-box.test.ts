import { expect, it } from "vitest";
import type { Envelope } from "../../../src/contracts/cloudevent.js";
import { DEAD_LETTERED, LETTER_RECEIVED, type DeadLetter } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { LetterBox, letterReceiptIn, type LetterBoxDeps } from "../../../src/platform/letter-box.js";
import { createLogger } from "../../../src/platform/log.js";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { MemoryKeyValue, TestClock } from "../../support/gateway-fakes.js";

const letterOf = (id: string, payload = "x"): Envelope => ({
  specversion: "1.0", id, source: "docket://tools", type: DEAD_LETTERED, datacontenttype: "application/json",
  data: JSON.stringify({ deadLetterId: id, kind: "event", reason: "expired", message: "m", topic: "t", app: "tools", tries: 1, payload, payloadEncoding: "utf8", firstFailedAtMs: 1, lastFailedAtMs: 1 } satisfies DeadLetter),
});

function boxes(count = 1, more: Partial<LetterBoxDeps> = {}) {
  const store = new MemoryKeyValue(), clock = new TestClock(1_000_000), sent: Envelope[] = [];
  const broker = { down: false };
  const publish = (envelope: Envelope): Promise<void> => {
    if (broker.down) return Promise.reject(new Problem("broker_unavailable", "down (test)"));
    sent.push(envelope);
    return Promise.resolve();
  };
  return { store, clock, sent, broker, box: Array.from({ length: count }, () => new LetterBox({ store, publish, clock, logger: createLogger("tools", "silent"), ...more })) as [LetterBox, ...LetterBox[]] };
}

it("publishes a letter again, whole and with growing pauses, until the console has it", async () => {
  const { box: [box], sent, clock, store } = boxes();
  const letter = letterOf("dl_1", `9007199254740993 "quoted" ${"ä".repeat(200_000)}`);
  await box.post(letter);
  const times: number[] = [];
  for (let s = 1; s <= 600; s += 1) { clock.advance(1_000); if (await box.look() > 0) times.push(s); }
  expect(times).toEqual([10, 30, 70, 150, 310]);
  expect(sent).toEqual(Array.from({ length: 6 }, () => letter));
  await box.received("dl_1");
  clock.advance(86_400_000);
  expect(await box.look()).toBe(0);
  expect([...store.items.keys()].filter((key) => key.startsWith("letter:"))).toEqual([]);
});

it("keeps what another process posted, and of two replicas one publishes", async () => {
  const { box: [first, second], sent, clock } = boxes(2);
  await first.post(letterOf("dl_1"));
  clock.advance(10_000);
  expect((await Promise.all([first.look(), second!.look()])).reduce((a, b) => a + b)).toBe(1);
  await second!.received("dl_1");
  clock.advance(3_600_000);
  expect(await first.look()).toBe(0);
  expect(sent).toHaveLength(2);
});

it("a broker that is down delays a letter; a store that is down refuses it, so that what died comes again", async () => {
  const { box: [box], sent, clock, broker, store } = boxes();
  broker.down = true;
  await box.post(letterOf("dl_1"));
  clock.advance(10_000);
  expect(await box.look()).toBe(0);
  broker.down = false;
  clock.advance(20_000);
  expect(await box.look()).toBe(1);
  store.down = true;
  await expect(box.post(letterOf("dl_2"))).rejects.toMatchObject({ code: "store_unavailable" });
  expect(sent.map(({ id }) => id)).toEqual(["dl_1"]);
});

it("the same letter twice is kept once; more than fit are published once and not kept", async () => {
  const { box: [box], sent, clock, broker, store } = boxes(1, { perIndex: 1 });
  const ids = Array.from({ length: 40 }, (_, n) => `dl_${String(n)}`);
  for (const id of [...ids, ...ids]) await box.post(letterOf(id));
  expect(sent).toHaveLength(80);
  const indexes = [...store.items.keys()].filter((key) => key.startsWith("letter-index:")).length;
  expect(indexes).toBeLessThan(40);
  expect([...store.items.keys()].filter((key) => key.startsWith("letter:"))).toHaveLength(indexes);
  clock.advance(10_000);
  expect(await box.look()).toBe(indexes);
  broker.down = true;
  await expect(Promise.all(ids.map((id) => box.post(letterOf(id))))).rejects.toMatchObject({ code: "broker_unavailable" });
});

it("writers at one index part, and none of them loses an entry", async () => {
  const { box: [one, two], clock, store } = boxes(2);
  await Promise.all(Array.from({ length: 30 }, (_, n) => (n % 2 === 0 ? one : two!).post(letterOf(`dl_${String(n)}`))));
  expect([...store.items.keys()].filter((key) => key.startsWith("letter:"))).toHaveLength(30);
  clock.advance(10_000);
  expect(await one.look()).toBe(30);
});

it("reads receipts, and nothing else", () => {
  const receipt = { specversion: "1.0", id: "r", source: "/docket/console", type: LETTER_RECEIVED, data: JSON.stringify({ deadLetterId: "dl_1", app: "gateway" }) } as const;
  expect(letterReceiptIn(serializeEnvelope(receipt))).toEqual({ deadLetterId: "dl_1", app: "gateway" });
  expect(letterReceiptIn(serializeEnvelope({ ...receipt, type: "com.example.talks-about", data: JSON.stringify(LETTER_RECEIVED) }))).toBeUndefined();
  expect(letterReceiptIn(serializeEnvelope({ ...receipt, data: '{"app":"shop"}' }))).toBeUndefined();
  expect(letterReceiptIn(`not json ${LETTER_RECEIVED}`)).toBeUndefined();
});
