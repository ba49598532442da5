import { readFileSync } from "node:fs";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { PROBLEMS, Problem, type ProblemCode } from "../../../src/contracts/problems.js";
import { EXIT } from "../../../src/cli/exit.js";
import { buildProgram, everyCommand } from "../../../src/cli/program.js";
import { versionOf } from "../../../src/cli/version.js";
import { identify } from "../../../src/launcher/process-identity.js";
import { docket, fakeServer, quietIo, sse, type FakeServer } from "../../support/cli-fakes.js";

let dir: string;
let server: FakeServer | undefined;
beforeEach(async () => { dir = await mkdtemp(join(tmpdir(), "docket-cli-")); });
afterEach(async () => { await server?.close(); server = undefined; await rm(dir, { recursive: true }); });
const env = () => ({ DOCKET_GATEWAY_URL: server!.url, DOCKET_CONSOLE_URL: server!.url, DOCKET_API_KEY: "dk_test_key" });
const answering = async (status: number, body: unknown) => { server = await fakeServer((_req, res) => { res.writeHead(status, { "content-type": "application/json" }).end(typeof body === "string" ? body : JSON.stringify(body)); }); };
const problem = (code: ProblemCode) => new Problem(code, `detail of ${code}`, { hint: `hint of ${code}` }).toDocument();

describe("exit codes", () => {
  it("are an interface: scripts depend on them", () => {
    expect(EXIT).toEqual({ ok: 0, failed: 1, usage: 2, notFound: 3, conflict: 4, notAllowed: 5, invalid: 6, unreachable: 7, negative: 8, deadLettered: 9, timeout: 124, interrupted: 130 });
  });

  it.each<[ProblemCode, number]>([
    ["session_not_found", 3], ["approval_not_found", 3], ["already_decided", 4], ["version_mismatch", 4], ["digest_mismatch", 4], ["approval_expired", 4], ["unauthenticated", 5], ["forbidden", 5], ["not_an_approver", 5],
    ["validation_failed", 6], ["bad_request", 6], ["arguments_invalid", 6], ["actor_unavailable", 7], ["store_unavailable", 7], ["rate_limited", 1], ["internal", 1],
  ])("%s ends with %i, what on one line, a hint, and the code", async (code, exit) => {
    await answering(PROBLEMS[code].status, problem(code));
    const ran = await docket(["session", "show", "s1"], { env: env() });
    expect(ran.code).toBe(exit);
    expect(ran.out).toBe("");
    expect(ran.err).toMatch(new RegExp(`^error: detail of ${code}\nhint:  .+\ncode:  ${code}\npage:  ${server!.url}/\\S*\n$`));
  });

  it("with -o json the problem document itself goes to stdout", async () => {
    await answering(404, problem("session_not_found"));
    expect(JSON.parse((await docket(["session", "show", "s1", "-o", "json"], { env: env() })).out)).toEqual({ ...problem("session_not_found"), page: `${server!.url}/sessions` });
  });

  it.each([[["nonsense"]], [["session", "show"]], [["session", "list", "--colour", "red"]], [["-o", "xml", "session", "list"]], [["approval", "reject", "a"]], [["session", "tail", "x", "--after", "soon"]], [["session", "list", "--gateway", "ftp://x"]], [["session", "list", "--timeout", "never"]]])("%j is a usage error", async (args) => {
    const ran = await docket(args);
    expect([ran.code, ran.out]).toEqual([EXIT.usage, ""]);
    expect(ran.err).toMatch(/^error: [^]*\ncode: {2}(usage|bad_url)\n/);
  });

  it.each(["5s", "-1", "0", "9999999"])("--timeout %s says what was given and what is expected", async (given) => {
    const ran = await docket(["session", "list", `--timeout=${given}`]);
    expect([ran.code, ran.err.split("\n")[0]]).toEqual([EXIT.usage, `error: --timeout: got ${given}, expected seconds as a number, such as 30; 2147483 at most`]);
  });

  it("usage errors, too, are JSON where JSON was asked for", async () => {
    expect(JSON.parse((await docket(["session", "lst", "-o", "json"])).out)).toMatchObject({ code: "usage", detail: expect.stringContaining("lst") as string, page: "http://127.0.0.1:7301/sessions" });
  });

  it("nobody there is 7, and says what to start", async () => {
    await answering(200, {});
    const gone = env();
    await server!.close();
    const ran = await docket(["session", "list"], { env: gone });
    expect(ran.code).toBe(7);
    expect(ran.err).toMatch(/cannot be reached: .*ECONNREFUSED/);
    expect(ran.err).toMatch(/npm run dev/);
  });

  it("an answer that does not come is 124, Ctrl-C is 130", async () => {
    server = await fakeServer(() => undefined);
    expect((await docket(["session", "list", "--timeout", "0.1"], { env: env() })).code).toBe(124);
    const ctrlC = new AbortController();
    await server.close();
    server = await fakeServer(() => { ctrlC.abort(); });
    expect((await docket(["session", "list"], { env: env(), interrupted: ctrlC.signal })).code).toBe(130);
  });

  it.each([["a page of something else", "<html>"], ["another shape", '{"items":[{"id":1}]}']])("%s is a failure, not a crash", async (_name, body) => {
    await answering(200, body);
    const ran = await docket(["session", "list"], { env: env() });
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(/does not understand/);
  });

  it("a proxy's error page is told apart", async () => {
    await answering(502, "<html>bad gateway</html>");
    expect(await docket(["session", "list"], { env: env() })).toMatchObject({ code: 7, err: expect.stringContaining("http_502") as unknown });
  });
});

describe("errors carry the page of the console", () => {
  it.each<[string[], ProblemCode, string]>([
    [["session", "show", "a/b"], "actor_unavailable", "/sessions/a%2Fb"], [["session", "show", "s1"], "session_not_found", "/sessions"], [["session", "list"], "rate_limited", "/sessions"], [["session", "state", "s1", "--rev", "9"], "not_found", "/sessions"],
    [["approval", "show", "apr_1"], "internal", "/approvals/apr_1"], [["approval", "approve", "apr_1", "--yes"], "internal", "/approvals/apr_1"], [["approval", "approve", "apr_1", "apr_2", "--yes"], "internal", "/approvals"], [["approval", "show", "apr_1"], "approval_not_found", "/approvals"],
    [["dlq", "show", "dl_1"], "store_unavailable", "/dead-letters/dl_1"], [["dlq", "redrive", "--all", "--reason", "r"], "forbidden", "/dead-letters"], [["audit", "state"], "forbidden", "/audit"], [["policy", "list"], "forbidden", "/policies"],
    [["agent", "list"], "forbidden", "/agents"], [["costs"], "forbidden", "/costs"], [["lists", "rebuild", "--reason", "r"], "forbidden", "/system"], [["session", "list"], "unauthenticated", "/"],
  ])("%j refused with %s: %s", async (args, code, page) => {
    await answering(PROBLEMS[code].status, problem(code));
    expect((await docket(args, { env: env() })).err).toContain(`code:  ${code}\npage:  ${server!.url}${page}\n`);
  });

  it("also those before any request: a wrong option, a missing --yes, a file that is not there", async () => {
    await answering(200, {});
    expect((await docket(["approval", "list", "--colour"], { env: env() })).err).toContain(`code:  usage\npage:  ${server!.url}/approvals\n`);
    expect((await docket(["audit", "verify", "nowhere.jsonl"], { env: env() })).err).toContain(`page:  ${server!.url}/audit\n`);
    expect((await docket(["nonsense"], { env: env() })).err).toContain(`code:  usage\npage:  ${server!.url}/system\n`);
    expect((await docket(["session", "list", "--console", "ftp://x"])).err).not.toContain("page:");
  });
});

describe("where things are", () => {
  it("the run.json of a running stack gives URLs and key, from any folder below", async () => {
    await answering(200, { items: [] });
    await mkdir(join(dir, ".docket"));
    await mkdir(join(dir, "deep", "er"), { recursive: true });
    await writeFile(join(dir, ".docket", "key"), "dk_from_file\n");
    await writeFile(join(dir, ".docket", "run.json"), JSON.stringify({ pid: process.pid, startedAt: identify(process.pid)?.startedAt ?? "", profile: "embedded", consoleUrl: server!.url, apiKeyFile: join(dir, ".docket", "key"), ports: {} }));
    expect((await docket(["session", "list"], { cwd: join(dir, "deep", "er") })).code).toBe(0);
    expect(server!.requests[0]!.headers.authorization).toBe("Bearer dk_from_file");
  });

  it("a flag beats the environment", async () => {
    await answering(200, { items: [] });
    expect((await docket(["session", "list", "--console", `${server!.url}/`, "--api-key", "dk_flag"], { env: { DOCKET_CONSOLE_URL: "http://127.0.0.1:1", DOCKET_API_KEY: "dk_env" } })).code).toBe(0);
    expect(server!.requests[0]!.headers.authorization).toBe("Bearer dk_flag");
  });
});

describe("help", () => {
  it("every command has an example, and every description fits", async () => {
    const leaves: string[] = [];
    everyCommand(buildProgram(quietIo(dir), () => async () => undefined), (command) => {
      if (command.commands.length > 0) return;
      const path: string[] = [];
      for (let at: typeof command | null = command; at !== null; at = at.parent) path.unshift(at.name());
      leaves.push(path.slice(1).join(" "));
    });
    expect(leaves.length).toBeGreaterThan(18);
    for (const leaf of leaves) {
      const ran = await docket([...leaf.split(" "), "--help"]);
      expect(ran.code).toBe(0);
      expect(ran.out, leaf).toMatch(/Examples?:\n {2}docket /);
    }
  });
});

describe("--version", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { version: string };
  it.each([[["--version"]], [["-V"]], [["session", "list", "--version"]]])("%j prints the package's version alone and asks nobody", async (args) => {
    expect(await docket(args, { env: { DOCKET_CONSOLE_URL: "http://127.0.0.1:1" } })).toMatchObject({ code: 0, out: `${version}\n`, err: "" });
  });
  it("is in the help, and found from the compiled files as from the sources", async () => {
    expect((await docket(["--help"])).out).toMatch(/-V, --version +print the version/);
    expect(versionOf(resolve("dist/src/cli"))).toBe(version);
  });
  it("is not that of another package, nor made up where there is none", async () => {
    await writeFile(join(dir, "package.json"), JSON.stringify({ name: "other", version: "9.9.9" }));
    expect(versionOf(dir)).toBe("unknown");
  });
});

describe("session send --wait and tail", () => {
  const runId = `run_${"a".repeat(24)}`;
  const accepted = { sessionId: "s1", tenant: "default", runId, eventId: "e", eventSource: "/x", eventKey: "k", agent: "assistant", links: { session: "/", stream: "/" } };
  const entry = (rev: number, ...events: unknown[]) => sse("journal", { rev, atMs: 0, command: "x", events }, rev);
  const ended = (outcome: string, text = "It is on its way.") => ({ type: "RunEnded", runId, key: "k", outcome, text });
  const view = (summary: object) => ({ summary: { tenant: "default", sessionId: "s1", actorId: "a", agent: "assistant", agentVersion: "1", status: "IDLE", rev: 3, createdAtMs: 0, updatedAtMs: 0, waitingFor: "", mailboxLength: 0, openApprovals: 0, modelCalls: 1, toolCalls: 0, inputTokens: 1, outputTokens: 1, costUsd: 0, ...summary }, approvals: [], recentRuns: [{ runId, key: "k", outcome: "failed", endedAtMs: 0, rev: 3 }], unknownCalls: [] });
  /** Streams one chunk of `connections` per connection; then cuts it, or ends it. */
  const streaming = async (connections: string[], summary: object = { runId }) => {
    let opened = 0;
    server = await fakeServer((req, res) => {
      if (req.method === "POST") { res.writeHead(202).end(JSON.stringify(accepted)); return; }
      if (!(req.url ?? "").includes("/stream")) { res.writeHead(200).end(JSON.stringify(view(summary))); return; }
      const chunk = connections[opened];
      opened += 1;
      if (chunk === undefined) { res.writeHead(404).end(JSON.stringify(problem("session_not_found"))); return; }
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk);
      if (!chunk.includes("event: end")) setTimeout(() => { res.destroy(); }, 30);
    });
  };

  it("prints the answer alone on stdout and ends 0", async () => {
    await streaming([entry(1, { type: "RunStarted", runId, input: "hi" }) + entry(2, ended("completed")) + sse("end", { runId, outcome: "completed", rev: 2 })]);
    const ran = await docket(["session", "send", "s1", "where is it", "--wait"], { env: env() });
    expect([ran.code, ran.out]).toEqual([0, "It is on its way.\n"]);
    expect(server!.requests[0]).toMatchObject({ method: "POST", path: "/v1/sessions/s1/events", body: '{"text":"where is it"}' });
    expect(server!.requests[0]!.headers["idempotency-key"]).toMatch(/.{36}/);
    expect(server!.requests[1]!.path).toBe(`/v1/sessions/s1/stream?wait=1&until=run%3A${runId}`);
  });

  it("send --wait ends with 9 and names the letter where no session took the event", async () => {
    await streaming([sse("end", { runId, outcome: "dead_lettered", code: "mailbox_full", deadLetterId: "dl_1", rev: 0 })]);
    const ran = await docket(["session", "send", "s1", "hi", "--wait"], { env: env() });
    expect(ran).toMatchObject({ code: 9, out: "" });
    expect(ran.err).toContain("never became a run (mailbox_full): docket dlq show dl_1");
    await server!.close();
    await streaming([sse("end", { runId, outcome: "dead_lettered", code: "mailbox_full", deadLetterId: "dl_1", rev: 0 })]);
    const json = await docket(["session", "send", "s1", "hi", "--wait", "-o", "json"], { env: env() });
    expect(JSON.parse(json.out)).toMatchObject({ outcome: "dead_lettered", deadLetterId: "dl_1" });
  });

  it("ends 8 when the run did not complete, and 124 when --timeout was over", async () => {
    await streaming([entry(2, ended("failed", "no")) + sse("end", { runId, outcome: "failed", code: "budget", rev: 2 })]);
    expect(await docket(["session", "send", "s1", "x", "--wait"], { env: env() })).toMatchObject({ code: 8, out: "no\n", err: expect.stringContaining("failed (budget)") as unknown });
    await server!.close();
    server = await fakeServer((req, res) => { if (req.method === "POST") res.writeHead(202).end(JSON.stringify(accepted)); else res.writeHead(200, { "content-type": "text/event-stream" }).write(": hb\n\n"); });
    expect((await docket(["session", "send", "s1", "x", "--wait", "--timeout", "0.2"], { env: env() })).code).toBe(124);
  });

  it("a cut stream goes on with Last-Event-ID: every entry once", async () => {
    await streaming([entry(1, { type: "SessionOpened", agent: "assistant" }), entry(1, { type: "SessionOpened", agent: "assistant" }) + entry(2, { type: "RunStarted", runId, input: "hello" }), entry(3, ended("completed")) + sse("end", { runId, outcome: "completed", rev: 3 })]);
    const ran = await docket(["session", "tail", "s1", "--run", runId], { env: env() });
    expect(ran.code).toBe(0);
    expect(ran.out.split("\n").map((line) => line.slice(9).trim()).filter(Boolean)).toEqual(["#1  session opened for agent assistant", `#2  run ${runId}: hello`, "#3  completed: It is on its way."]);
    expect(server!.requests.map((r) => r.headers["last-event-id"])).toEqual([undefined, "1", "2"]);
    expect(ran.err.match(/reconnecting/g)).toHaveLength(2);
  });

  it("what the server refuses is not tried again", async () => {
    await streaming([]);
    expect(await docket(["session", "tail", "s1"], { env: env() })).toMatchObject({ code: 3 });
    expect(server!.requests).toHaveLength(1);
  });

  it("--until-end of a session at rest shows its journal and ends as its last run did", async () => {
    await streaming([entry(1, { type: "SessionOpened", agent: "assistant" }) + entry(3, ended("failed"))], {});
    expect(await docket(["session", "tail", "s1", "--until-end", "-o", "jsonl"], { env: env() })).toMatchObject({ code: 8, out: expect.stringMatching(/^\{"rev":1.*\}\n\{"rev":3.*\}\n$/) as unknown });
    expect((await docket(["session", "tail", "s1", "--until-end", "--after", "3"], { env: env() })).code).toBe(8);
  });

  it("text from outside cannot move the cursor or turn the line around, and unknown events are passed over", async () => {
    await streaming([entry(1, { type: "FromTheFuture" }, { type: "ModelAnswered", text: "\u001b[2Jhi\u202e there", calls: [] }, ended("completed", "\u009b31mred")) + sse("end", { runId, outcome: "completed", rev: 1 })]);
    const ran = await docket(["session", "tail", "s1", "--run", runId], { env: env() });
    expect(ran.out).toContain("model \\u001b[2Jhi\\u202e there");
    expect(ran.out).toContain("completed: \\u009b31mred");
    // eslint-disable-next-line no-control-regex -- looking for exactly these
    expect(ran.out).not.toMatch(/[\u001b\u009b\u202e]/);
  });
});

describe("policy", () => {
  const cli = (args: string[]) => docket(["policy", ...args], { cwd: dir });
  beforeEach(async () => {
    await mkdir(join(dir, "policies"));
    await writeFile(join(dir, "policies", "a.yaml"), "version: 1\nrules:\n  - { id: big, match: { tools: [refund] }, when: 'args.amount > 500', verdict: ask, reason: large }\n  - { id: small, match: { tools: [refund] }, when: 'args.amount <= 500', verdict: allow, reason: small }\n");
  });

  it("lint passes a good folder, shows all faults of a bad one, and --strict counts warnings", async () => {
    expect(await cli(["lint"])).toMatchObject({ code: 0, out: expect.stringMatching(/^p-[0-9a-f]{12}: 2 rules, 0 warnings\n$/) as unknown });
    await writeFile(join(dir, "policies", "b.yaml"), "version: 1\nrules:\n  - { id: x, verdict: alow, reason: r }\n  - { id: y, verdict: deny, reason: r, when: 'nope > 1' }\n");
    const bad = await cli(["lint"]);
    expect(bad.code).toBe(6);
    expect(bad.err).toMatch(/b\.yaml:3 x: .*did you mean "allow"/);
    expect(bad.err).toMatch(/b\.yaml:4 y: .*Unknown variable: nope/);
    await writeFile(join(dir, "policies", "b.yaml"), "version: 1\nrules:\n  - { id: never, verdict: deny, reason: r }\n");
    expect((await cli(["lint"])).code).toBe(0);
    expect(await cli(["lint", "--strict"])).toMatchObject({ code: 8, out: expect.stringContaining("a.yaml:3 big: warning: never has an effect") as unknown });
    expect((await cli(["lint", "nowhere.yaml"])).code).toBe(3);
  });

  it("test says the verdict and why, and --expect makes it a check", async () => {
    expect(await cli(["test", "--tool", "refund", "--args", '{"amount":600}'])).toMatchObject({ code: 0, out: expect.stringMatching(/verdict +ask\nrule +big\n/) as unknown });
    expect((await cli(["test", "--tool", "refund", "--args", '{"amount":5}', "--expect", "allow"])).code).toBe(0);
    expect((await cli(["test", "--tool", "refund", "--args", '{"amount":600}', "--expect", "allow"])).code).toBe(8);
    expect((await cli(["test", "--tool", "refund", "--args", "{oops"])).code).toBe(6);
    expect((await cli(["test", "--tool", "refund", "--class", "robot"])).code).toBe(2);
    await writeFile(join(dir, "call.json"), '{"amount": 700}');
    expect(JSON.parse((await cli(["test", "--tool", "refund", "--args", "@call.json", "-o", "json"])).out)).toMatchObject({ verdict: "ask", rule: "big" });
  });

  it("a file that cannot be read is a usage error", async () => {
    await writeFile(join(dir, "secret.json"), "{}");
    await chmod(join(dir, "secret.json"), 0o000);
    expect((await cli(["test", "--tool", "refund", "--args", "@missing.json"])).code).toBe(2);
  });
});
