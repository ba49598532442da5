/** Where a delivery is handled: where the session lives, and here when that place does not answer. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { PROMPT_RECEIVED, SESSION_NUDGE } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import { createLogger } from "../../../src/platform/log.js";
import { reach, type Answer } from "../../../src/session/host/reach.js";

const TARGET = { tenant: "default", sessionId: "s1", actorId: "default_s1" };
const gone = (): Promise<Answer> => Promise.reject(new Problem("actor_unavailable", "the host is gone (test)"));
const ok = (): Promise<Answer> => Promise.resolve({ ok: true });

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

/** Delivers once and tells who was asked. */
async function deliver(about: { livesHere?: boolean; here?: () => Promise<Answer>; there?: () => Promise<Answer>; type?: string }): Promise<string[]> {
  const asked: string[] = [];
  const handed = reach({
    livesHere: () => about.livesHere ?? false, timeoutMs: 6_000, logger: createLogger("test", "silent"),
    here: () => { asked.push("here"); return (about.here ?? ok)(); },
    there: () => { asked.push("there"); return (about.there ?? ok)(); },
  })(TARGET, "tasks", "{}", about.type ?? PROMPT_RECEIVED);
  handed.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(6_000);
  await handed;
  return asked;
}

describe("a delivery", () => {
  it("goes to the actor where it lives", async () => {
    expect(await deliver({})).toEqual(["there"]);
    expect(await deliver({ livesHere: true })).toEqual(["here"]);
  });

  it("is handled here when the place where the actor lives does not answer: the fence of the commit decides", async () => {
    expect(await deliver({ there: gone })).toEqual(["there", "here"]);
  });

  it("goes to the other place where the first is of an older build than what is stored of the session", async () => {
    const older = (): Promise<Answer> => Promise.resolve({ ok: false, code: "newer_version", message: "" });
    expect(await deliver({ there: older })).toEqual(["there", "here"]);
    expect(await deliver({ livesHere: true, here: older })).toEqual(["here", "there"]);
    await expect(deliver({ here: older, there: older })).rejects.toMatchObject({ code: "actor_unavailable", message: expect.stringContaining("newer_version") as string });
  });

  it("that is a nudge is handled by whoever gets it, since the session's host may be gone", async () => {
    expect(await deliver({ type: SESSION_NUDGE, there: gone })).toEqual(["here"]);
  });

  it("that is not taken is repeated by the broker", async () => {
    await expect(deliver({ there: () => Promise.resolve({ ok: false, code: "store_unavailable", message: "down" }) })).rejects.toMatchObject({ code: "actor_unavailable", message: expect.stringContaining("store_unavailable") as string });
    await expect(deliver({ there: gone, here: () => new Promise(() => undefined) })).rejects.toMatchObject({ code: "actor_unavailable", message: expect.stringContaining("6000 ms") as string });
  });
});
