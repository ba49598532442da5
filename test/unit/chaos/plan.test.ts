/** The command line and the plan of `npm run chaos`: everything from the seed, nothing from the clock. */
import { describe, expect, it } from "vitest";
import { FAULT_POINTS } from "../../../src/platform/faults.js";
import { APP_COPIES, CATALOG } from "../../chaos/catalog.js";
import { OptionError, parseOptions } from "../../chaos/options.js";
import { faultsOf, planOf } from "../../chaos/plan.js";

const names = CATALOG.map((fault) => fault.name);
const options = (...args: string[]): ReturnType<typeof parseOptions> => parseOptions(args, names);

describe("the options", () => {
  it("are twenty minutes of everything on the embedded profile, with a seed", () => {
    const parsed = options();
    expect(parsed).toMatchObject({ minutes: 20, profile: "embedded", only: [], show: "run" });
    expect(Number.isInteger(parsed.seed)).toBe(true);
  });

  it("take beginnings of names, several of them", () => {
    expect(faultsOf("embedded", options("--only", "kill:worker,freeze:host").only).map((fault) => fault.name)).toEqual(["kill:worker", "freeze:host"]);
    expect(faultsOf("embedded", ["boundary:worker"]).length).toBe(4);
  });

  it.each([
    [["--only", "klil"], /--only names "klil".*--list/], [["--minutes", "soon"], /--minutes is "soon"/], [["--minutes", "0"], /--minutes is "0"/],
    [["--profile", "local"], /--profile is "local", expected embedded or production/], [["--seed", "x"], /--seed is "x"/], [["--rounds", "0"], /--rounds is "0"/], [["--in-flight", "many"], /--in-flight is "many"/], [["--bogus"], /--help lists/],
  ])("refuse %j and say what is wrong", (args, message) => {
    expect(() => options(...args)).toThrow(OptionError);
    expect(() => options(...args)).toThrow(message);
  });
});

describe("the plan", () => {
  const of = (seed: number, minutes = 20, only: string[] = []): ReturnType<typeof planOf> => planOf({ seed, minutes, profile: "embedded", only });

  it("is the same for the same seed, and another for another", () => {
    expect(of(7)).toEqual(of(7));
    expect(of(7).rounds.map((round) => round.fault.name)).not.toEqual(of(8).rounds.map((round) => round.fault.name));
  });

  it("does each fault once before any twice, and says what the time does not reach", () => {
    const { rounds, skipped } = of(7, 2);
    expect(skipped.length).toBeGreaterThan(0);
    expect(new Set(rounds.map((round) => round.fault.name)).size).toBe(rounds.length);
    const many = of(7, 10, ["kill"]).rounds.map((round) => round.fault.name);
    const kinds = new Set(many).size;
    expect(new Set(many.slice(0, kinds)).size).toBe(kinds);
    expect(many.length).toBeGreaterThan(kinds);
  });

  it("has as many rounds as asked for, with twice the events that must be in flight; without such wishes it is as it was", () => {
    const plan = planOf({ seed: 7, minutes: 20, rounds: 60, inFlight: 30, profile: "embedded", only: ["kill"] });
    expect([plan.rounds.length, plan.inFlight, plan.skipped]).toEqual([60, 30, []]);
    for (const { sessions } of plan.rounds) {
      expect(sessions.flatMap((session) => session.events).length).toBeGreaterThanOrEqual(60);
      expect(new Set(sessions.map((session) => session.sessionId)).size).toBe(sessions.length);
    }
    expect(of(7, 2)).toEqual(planOf({ seed: 7, minutes: 2, rounds: undefined, inFlight: undefined, profile: "embedded", only: [] }));
    expect("inFlight" in of(7, 2)).toBe(false);
  });

  it.each(["embedded", "production"] as const)("reaches every fault of %s in twenty minutes, whatever the seed", (profile) => {
    for (const seed of [1, 7, 2411]) expect(planOf({ seed, minutes: 20, profile, only: [] }).skipped).toEqual([]);
  });

  it("gives each copy of a rolling restart work of its own", () => {
    const [round] = of(7, 1, ["roll"]).rounds;
    expect(round?.waves.map((wave) => wave.length)).toEqual(APP_COPIES.map(() => round?.sessions.length));
    expect(new Set([...round!.sessions, ...round!.waves.flat()].map((session) => session.sessionId)).size).toBe(round!.sessions.length * (1 + APP_COPIES.length));
  });

  it("has faults of the databases and the network only where there are any", () => {
    expect(faultsOf("embedded", []).some((fault) => fault.name.includes("database"))).toBe(false);
    expect(faultsOf("production", []).some((fault) => fault.name === "hang:database")).toBe(true);
  });

  it("passes every fault point of the code", () => {
    const points = new Set(CATALOG.flatMap(({ action }) => (action.do === "boundary" ? [action.point] : [])));
    expect([...points].sort()).toEqual(Object.keys(FAULT_POINTS).sort());
  });
});
