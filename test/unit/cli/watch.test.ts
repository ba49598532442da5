/** `--watch`: what changes, a console that goes away and comes back, and how it ends. */
import { afterEach, describe, expect, it } from "vitest";
import { PROBLEMS, Problem } from "../../../src/contracts/problems.js";
import { docket, fakeServer, type FakeServer, type RunOptions } from "../../support/cli-fakes.js";
import { pendingOf, recordOf, summaryOf } from "../../support/console-fakes.js";

let server: FakeServer;
afterEach(() => server.close());

type Answer = { items: object[]; nextCursor?: string } | "away" | "forbidden";
/** Answers in turn, the last one again and again; `after` is called when that has been given twice. */
async function answering(answers: readonly Answer[], after: () => void): Promise<void> {
  let asked = 0;
  server = await fakeServer((_req, res) => {
    const answer = answers[Math.min(asked, answers.length - 1)]!;
    asked += 1;
    if (asked > answers.length + 1) after();
    if (typeof answer === "object") res.end(JSON.stringify(answer));
    else if (answer === "away") res.destroy();
    else res.writeHead(PROBLEMS.forbidden.status).end(JSON.stringify(new Problem("forbidden", "no").toDocument()));
  });
}
async function watched(answers: readonly Answer[], args: string[], options: RunOptions = {}) {
  const ctrlC = new AbortController();
  await answering(answers, () => { ctrlC.abort(); });
  return docket([...args, "--watch", "--every", "0.1"], { env: { DOCKET_CONSOLE_URL: server.url }, interrupted: ctrlC.signal, ...options });
}
const session = (sessionId: string, rev = 1) => summaryOf({ sessionId, rev });
const lines = (out: string) => out.trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);

describe("-o jsonl", () => {
  it("prints each row once, again when it has changed, and says which have left", async () => {
    const ran = await watched([{ items: [session("a"), session("b")] }, { items: [session("a"), session("b")] }, { items: [session("a", 2)] }], ["session", "list", "-o", "jsonl"]);
    expect(ran.code).toBe(130);
    expect(lines(ran.out).map(({ sessionId, rev, gone }) => gone ?? `${String(sessionId)} ${String(rev)}`)).toEqual(["a 1", "b 1", "a 2", "b"]);
  });

  it("a row that another page may hold has not left", async () => {
    const ran = await watched([{ items: [session("a"), session("b")] }, { items: [session("c"), session("a")], nextCursor: "x" }], ["session", "list", "-o", "jsonl"]);
    expect(lines(ran.out).map(({ sessionId }) => sessionId)).toEqual(["a", "b", "c"]);
  });

  it("says once that the console is away and once that it is back, and repeats nothing", async () => {
    const ran = await watched([{ items: [session("a")] }, "away", "away", { items: [session("a"), session("b")] }], ["session", "list", "-o", "jsonl"]);
    expect(lines(ran.out).map(({ sessionId }) => sessionId)).toEqual(["a", "b"]);
    expect(ran.err.match(/the console is away .*waiting for it/g)).toHaveLength(1);
    expect(ran.err).toMatch(/away[\s\S]*the console is back/);
  });

  it.each([
    ["approvals", ["approval", "list"], pendingOf(recordOf()), "apr_1"],
  ])("works for %s", async (_what, args, pending, id) => {
    const ran = await watched([{ items: [{ pending, state: "open" }] }, { items: [] }], [...args, "-o", "jsonl"]);
    expect(lines(ran.out)).toEqual([expect.objectContaining({ state: "open" }), { gone: id }]);
  });
});

describe("on a terminal", () => {
  /** What was drawn, draw by draw. */
  const screen = async (answers: readonly Answer[], rows: number) => {
    const draws: string[] = [];
    const ran = await watched(answers, ["session", "list"], { rows, onOut: (text) => { draws.push(text); } });
    return { ...ran, draws };
  };

  it("draws the table in place on a screen of its own, and gives that back with the last table below", async () => {
    const { code, draws } = await screen([{ items: [session("a")] }, { items: [session("b")] }], 6);
    expect(code).toBe(130);
    expect(draws[0]).toContain("\u001b[?1049h");
    expect(draws[1]?.startsWith("\u001b[H")).toBe(true);
    expect(draws.filter((text) => text.includes("\u001b[?1049h"))).toHaveLength(1);
    expect(draws.at(-2)).toBe("\u001b[?7h\u001b[?25h\u001b[?1049l");
    expect(draws.at(-1)).toMatch(/SESSION[\s\S]*b +orders/);
    expect(draws.at(-1)).not.toContain("\u001b[H");
  });

  it("what does not fit is counted, not scrolled", async () => {
    const { draws } = await screen([{ items: ["a", "b", "c", "d", "e"].map((id) => session(id)) }], 6);
    expect(draws[0]?.split("\r\n")).toHaveLength(6);
    expect(draws[0]).toContain("… 3 more");
  });

  it("a console that is away is said above what was there before, and not in its midst", async () => {
    const { draws, err } = await screen([{ items: [session("a")] }, "away", { items: [session("b")] }], 10);
    const lost = draws.findIndex((text) => text.includes("the console is away"));
    expect(draws[lost]).toMatch(/what follows is from before[\s\S]*a +orders/);
    expect(draws[lost + 1]).toMatch(/Ctrl-C ends[\s\S]*b +orders/);
    expect(err).not.toContain("away");
  });
});

describe("into a pipe", () => {
  it("prints the table anew when a row has changed, not when only time has passed", async () => {
    const ran = await watched([{ items: [session("a")] }, { items: [session("a")] }, { items: [session("a", 2)] }], ["session", "list"]);
    expect(ran.out.match(/SESSION /g)).toHaveLength(2);
    expect(ran.out).not.toContain("\u001b");
  });
});

describe("ends", () => {
  it("with what waiting cannot mend", async () => {
    expect(await watched([{ items: [] }, "forbidden"], ["session", "list", "-o", "jsonl"])).toMatchObject({ code: 5, err: expect.stringContaining("forbidden") as unknown });
  });

  it("when --timeout is over", async () => {
    expect(await watched([{ items: [] }], ["session", "list", "--timeout", "0.3"], { interrupted: new AbortController().signal })).toMatchObject({ code: 124 });
  });

  it.each([["-o", "json"], ["--every", "often"], ["--every", "0"]])("before it has begun, for %s %s", async (...flag) => {
    await answering([{ items: [] }], () => undefined);
    expect((await docket(["session", "list", "--watch", ...flag], { env: { DOCKET_CONSOLE_URL: server.url } })).code).toBe(2);
    expect(server.requests).toEqual([]);
  });
});
