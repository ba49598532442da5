/** Log lines know whose they are; the level changes while the app runs, and goes back. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { logsAbout, withContext } from "../../../src/platform/log-context.js";
import { LogLevelSwitch } from "../../../src/platform/log-level.js";
import { createLogger } from "../../../src/platform/log.js";

describe("a log line", () => {
  it("carries session, run and trace of the actor, run or call that it names", () => {
    logsAbout(["run_a", "actor_a"], { tenant: "default", sessionId: "order-1", runId: "run_a", traceId: "t1" });
    logsAbout(["call_a"], { sessionId: "order-1", runId: "run_a" });
    expect(withContext({ actorId: "actor_a", code: "x" })).toEqual({ tenant: "default", sessionId: "order-1", runId: "run_a", traceId: "t1", actorId: "actor_a", code: "x" });
    expect(withContext({ callId: "call_a" })).toEqual({ sessionId: "order-1", runId: "run_a", callId: "call_a" });
    expect(withContext({ actorId: "nobody" })).toEqual({ actorId: "nobody" });
  });

  it("does not take the trace of an earlier run for that of the present one", () => {
    logsAbout(["actor_b"], { sessionId: "s", runId: "run_1", traceId: "t1" });
    logsAbout(["actor_b"], { runId: "run_2" });
    expect(withContext({ actorId: "actor_b" })).toEqual({ sessionId: "s", runId: "run_2", actorId: "actor_b" });
  });

  it("is bounded", () => {
    for (let index = 0; index < 5_000; index += 1) logsAbout([`run_${String(index)}`], { sessionId: "s" });
    expect(withContext({ runId: "run_0" })).toEqual({ runId: "run_0" });
    expect(withContext({ runId: "run_4999" })).toEqual({ sessionId: "s", runId: "run_4999" });
  });
});

describe("the log level", () => {
  beforeEach(() => { vi.useFakeTimers(); });
  afterEach(() => { vi.useRealTimers(); });

  it("goes back by itself, at once when asked, and by the second signal", () => {
    const logger = createLogger("test", "silent");
    const level = new LogLevelSwitch(logger, () => Date.now());
    expect(level.set("fatal", 60_000)).toEqual({ level: "fatal", untilMs: Date.now() + 60_000 });
    vi.advanceTimersByTime(60_000);
    expect(level.state()).toEqual({ level: "silent" });
    level.set("fatal");
    expect(level.reset()).toEqual({ level: "silent" });
    expect(vi.getTimerCount()).toBe(0);
  });
});
