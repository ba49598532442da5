/** What wakes streams and what reads cost (F1, F2), by hand-driven promises. */
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { JournalPage } from "../../../src/contracts/api.js";
import { Feeds } from "../../../src/gateway/out/feeds.js";
import { Alarm } from "../../../src/gateway/out/stream.js";

function make() {
  const asked: { afterRev: number; answer: (page: JournalPage) => void }[] = [];
  const feeds = new Feeds({ readJournal: (_actorId, afterRev) => new Promise((resolve) => { asked.push({ afterRev, answer: resolve }); }) }, { pollMs: 60_000, pollCapMs: 60_000, pageSize: 10 });
  const open = () => { const alarm = new Alarm(); return { alarm, feed: feeds.open("a", { wake: () => { alarm.ring(); }, delta: () => undefined }) }; };
  return { asked, feeds, open };
}
const empty: JournalPage = { entries: [], headRev: 5 };

describe("feeds", () => {
  it("F1: a read that began before a hint is not shared with a stream that the hint woke", async () => {
    const { asked, feeds, open } = make();
    const [one, two] = [open(), open()];
    void one.feed.read(5);
    void two.feed.read(5);
    expect(asked).toHaveLength(1);
    feeds.advance("a", 6);
    void two.feed.read(5);
    void one.feed.read(5);
    expect(asked).toHaveLength(2);
    asked[0]?.answer(empty);
    await Promise.resolve();
    void one.feed.read(5);
    expect(asked).toHaveLength(2); // the older answer did not unshare the newer read
    one.feed.close();
    two.feed.close();
  });

  it("F2: nothing is left when the last stream closed, and closing twice is fine", () => {
    const { feeds, open } = make();
    const [one, two] = [open(), open()];
    one.feed.close();
    expect(feeds.size).toBe(1);
    two.feed.close();
    two.feed.close();
    expect(feeds.size).toBe(0);
    feeds.advance("a", 6);
    feeds.delta({ actorId: "a", runId: "r", step: 1, attempt: 1, index: 0, text: "" });
    expect(feeds.size).toBe(0);
  });

  it("an alarm keeps a ring that came while nobody slept, once", async () => {
    const alarm = new Alarm();
    alarm.ring();
    alarm.ring();
    await alarm.wait();
    let woken = false;
    const second = alarm.wait().then(() => { woken = true; });
    await yieldToOthers(); // whoever could be woken by now is
    expect(woken).toBe(false);
    alarm.ring();
    await second;
    const started = performance.now();
    await alarm.wait(20);
    expect(performance.now() - started).toBeGreaterThan(15);
  });
});
