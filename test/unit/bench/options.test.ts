/** The command line of `npm run bench`, and what it says of what it counted and checked. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { syncsIn } from "../../../bench/meter.js";
import { readConsoleOptions, readOptions } from "../../../bench/options.js";
import { verdictLine } from "../../../bench/report.js";

let said = "";
beforeEach(() => {
  said = "";
  vi.spyOn(process, "exit").mockImplementation((code) => { throw new Error(`exit ${String(code)}`); });
  for (const stream of [process.stdout, process.stderr]) vi.spyOn(stream, "write").mockImplementation((text) => { said += String(text); return true; });
});
afterEach(() => { vi.restoreAllMocks(); });

describe("the options", () => {
  it("are turns at 1, 16 and 128 sessions against a model that takes no time", () => {
    expect(readOptions([])).toMatchObject({ mode: "turns", broker: "nats", sessions: [1, 16, 128], delay: [0], seconds: 10 });
    expect(readOptions(["idle"]).count).toBeUndefined();
    expect(readConsoleOptions(["--database", "postgres", "--no-browser"])).toEqual({ sessions: 100_000, modelCalls: 6, database: "postgres", browser: false });
  });

  it.each<[string[], RegExp]>([
    [["--sessions", "abc"], /--sessions.*Expected a whole number from 1/], [["--sessions", "0"], /from 1/], [["--sessions", "1,,2"], /from 1/], [["--seconds", "0"], /--seconds.*from 1/], [["--count", "0"], /--count/], [["--delay", "-1"], /from 0/],
    [["--broker", "kafka"], /nats, rabbitmq/], [["bogus"], /Known modes: turns, scale, activation, approvals, idle, console/], [["turns", "idle"], /too many arguments/i],
  ])("refuse %j and say what is wrong, exit code 2", (args, message) => {
    expect(() => readOptions(args)).toThrow("exit 2");
    expect(said).toMatch(message);
  });

  it.each<[string[], RegExp]>([[["--database", "mysql"], /sqlite, postgres/], [["--sessions", "many"], /from 1/], [["--bogus"], /unknown option/]])("of the mode console refuse %j", (args, message) => {
    expect(() => readConsoleOptions(args)).toThrow("exit 2");
    expect(said).toMatch(message);
  });

  it("show help, every mode in it, exit code 0", () => {
    expect(() => readOptions(["--help"])).toThrow("exit 0");
    for (const word of ["turns", "activation", "approvals", "idle", "console --help", "--syscalls"]) expect(said).toContain(word);
    expect(() => readConsoleOptions(["--help"])).toThrow("exit 0");
    expect(said).toContain("--no-browser");
  });
});

describe("what is said of a run", () => {
  it("claims no check where nothing was sent", () => {
    expect(verdictLine({ events: 0, sessions: 0 }, 0)).not.toContain("nothing lost");
    expect(verdictLine({ events: 7, sessions: 2 }, 0)).toContain("nothing lost, doubled or out of order");
    expect(verdictLine({ events: 7, sessions: 2 }, 1)).toContain("1 PROBLEMS");
  });

  it("claims no fsync that perf could not count", () => {
    expect(syncsIn("12,,syscalls:sys_enter_fsync,5,100.00,,\n30,,syscalls:sys_enter_fdatasync,5,100.00,,\n")).toBe(42);
    expect(syncsIn("<not counted>,,syscalls:sys_enter_fsync,0,100.00,,\n30,,syscalls:sys_enter_fdatasync,5,100.00,,\n")).toBe(30);
    expect(syncsIn("<not supported>,,syscalls:sys_enter_fsync,0,100.00,,\n")).toBeUndefined();
    expect(syncsIn("perf: permission denied\n")).toBeUndefined();
  });
});
