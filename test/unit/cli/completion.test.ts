/** `docket completion`: the bash script in a real bash, against the tree that it was made of; names from a console. */
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { placesOf, type Place } from "../../../src/cli/completion/tree.js";
import { buildProgram } from "../../../src/cli/program.js";
import { docket, fakeServer, quietIo } from "../../support/cli-fakes.js";

let dir: string;
let places: Place[];
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-completion-"));
  places = placesOf(buildProgram(quietIo(dir), () => async () => undefined));
  writeFileSync(join(dir, "docket.bash"), (await docket(["completion", "bash"])).out);
  mkdirSync(join(dir, "bin"));
  // The command as the script asks it for names: one is hostile, one has a colon, one a space.
  writeFileSync(join(dir, "bin", "docket"), `#!/bin/sh\n[ "$1 $2" = "__complete sessions" ] && printf '%s\\tabout it\\n' 'ord-1001' 'ord-1002' 'shop:7' 'my cart' '$(touch ${dir}/harmed)'\nexit 0\n`);
  chmodSync(join(dir, "bin", "docket"), 0o755);
  mkdirSync(join(dir, "keys"));
  writeFileSync(join(dir, "event.json"), "{}");
});
afterAll(() => { rmSync(dir, { recursive: true }); });

/** What bash offers at the end of each line, as the words that would then stand there. Words are broken where readline breaks them. */
function offers(lines: readonly string[]): string[][] {
  const calls = lines.map((line) => {
    const words = line.split(" ").flatMap((word) => word === "" ? [""] : word.split(/([=:])/).filter((part) => part !== ""));
    return `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${String(words.length - 1)}; _docket; printf '%s\\n' "\${COMPREPLY[@]}"; echo ----`;
  });
  const out = execFileSync("bash", ["--norc", "--noprofile", "-uc", ["source docket.bash", ...calls].join("\n")], { cwd: dir, encoding: "utf8", env: { PATH: `${join(dir, "bin")}:${process.env["PATH"] ?? ""}` } });
  return out.split("----\n").slice(0, -1).map((part) => part.split("\n").filter((word) => word !== ""));
}

describe("in bash", () => {
  it("every place offers its commands, and after a dash its options and those that hold everywhere", () => {
    const lines = places.flatMap(({ path }) => [["docket", ...path, ""].join(" "), ["docket", ...path, "-"].join(" ")]);
    const answers = offers(lines);
    expect(places.length).toBeGreaterThan(60);
    const everywhere = places[0]!.flags.flatMap(({ names }) => names);
    for (const [index, { path, commands, flags }] of places.entries()) {
      if (commands.length > 0) expect(answers[index * 2], path.join(" ")).toEqual(commands.map(({ name }) => name));
      expect(new Set(answers[index * 2 + 1]), path.join(" ")).toEqual(new Set([...flags.flatMap(({ names }) => names), ...everywhere]));
    }
    expect(answers[0]).toEqual(expect.arrayContaining(["session", "approval", "dlq", "completion"]));
    expect(answers[0]).not.toContain("__complete");
  });

  it.each([
    ["docket -o ", ["table", "json", "jsonl"]], ["docket session list -o js", ["json", "jsonl"]], ["docket --output=js", ["json", "jsonl"]],
    ["docket approval list --state ", ["open", "decided", "expired", "withdrawn", "all"]], ["docket dlq list --state ", ["dead", "redriven", "discarded"]], ["docket completion ", ["bash", "zsh", "fish"]],
    ["docket app", ["approval"]], ["docket approval re", ["reject", "respond", "retry", "resend"]], ["docket session list --quar", ["--quarantined"]], ["docket --vers", ["--version"]],
    ["docket session list --status ID", ["IDLE"]], ["docket session list --status IDLE,ESC", ["IDLE,ESCALATED"]],
    ["docket audit verify ev", ["event.json"]], ["docket audit verify --keys-dir ke", ["keys"]],
    ["docket session list --search list --quar", ["--quarantined"]], ["docket --console http://127.0.0.1:7301 approval appr", ["approve"]], ["docket session send ord-1 ", []], ["docket nonsense ", []],
  ])("%j offers %j", (line, words) => { expect(offers([line])[0]!.sort()).toEqual([...words].sort()); });

  it("names come from the console, and are never run", () => {
    expect(offers(["docket session show ord"])[0]).toEqual(["ord-1001", "ord-1002"]);
    expect(offers(["docket approval list --session shop:"])[0]).toEqual(["7"]);
    expect(offers(["docket session tail "])[0]).toEqual(["ord-1001", "ord-1002", "shop:7", "my\\ cart", `\\$\\(touch\\ ${dir}/harmed\\)`]);
    expect(offers(["docket approval approve "])[0]).toEqual([]);
    expect(existsSync(join(dir, "harmed"))).toBe(false);
  });

  it("what was typed is not run either", () => {
    expect(offers([`docket session show $(touch\u00a0${dir}/harmed)`])[0]).toEqual([]);
    expect(existsSync(join(dir, "harmed"))).toBe(false);
  });
});

it.each(["zsh", "fish"])("%s has every command and every option of the tree", async (shell) => {
  const { code, out } = await docket(["completion", shell]);
  expect(code).toBe(0);
  for (const { path, commands, flags } of places) {
    for (const { name } of commands) expect(out, [...path, name].join(" ")).toContain(name);
    for (const flag of flags.flatMap(({ names }) => names)) expect(out, [...path, flag].join(" ")).toContain(shell === "zsh" ? flag : flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`);
  }
  expect(out).toContain("jsonl");
});

it("a shell that it does not know is a usage error", async () => { expect((await docket(["completion", "tcsh"])).code).toBe(2); });

describe("__complete", () => {
  it("gives names with what they are, and leaves out what cannot be typed", async () => {
    const server = await fakeServer((_req, res) => { res.end(JSON.stringify({ agents: [{ name: "orders", description: "Handles\norders." }, { name: "odd\u202ename", description: "" }], tools: [] })); });
    try {
      expect(await docket(["__complete", "agents"], { env: { DOCKET_CONSOLE_URL: server.url } })).toMatchObject({ code: 0, out: "orders\tHandles\\norders.\n", err: "" });
    } finally {
      await server.close();
    }
  });

  it("a console that cannot be asked has none, and nothing is said", async () => {
    expect(await docket(["__complete", "sessions"], { env: { DOCKET_CONSOLE_URL: "http://127.0.0.1:1" } })).toMatchObject({ code: 0, out: "", err: "" });
  });
});
