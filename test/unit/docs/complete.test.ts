/** The pages say all that the code has, and nothing that it does not have. */
import { describe, expect, it } from "vitest";
import { placesOf } from "../../../src/cli/completion/tree.js";
import { EXIT } from "../../../src/cli/exit.js";
import { buildProgram } from "../../../src/cli/program.js";
import { CHANNELS } from "../../../src/contracts/channels.js";
import { EscalationReason } from "../../../src/contracts/decisions.js";
import { CallStatus, RunOutcome, SESSION_STATUSES } from "../../../src/contracts/journal.js";
import { PROBLEMS } from "../../../src/contracts/problems.js";
import { quietIo } from "../../support/cli-fakes.js";
import { firstCells, pages, read, rows, section, sources } from "./pages.js";

const sorted = (words: Iterable<string>): string[] => [...new Set(words)].sort();

it("a page that installs Dapr on a cluster takes the version that is tested, with sidecars that pod security `restricted` takes", () => {
  const version = /dapr\/dapr v(\S+)/.exec(read("runtime/dapr-control-plane/go.mod"))?.[1] ?? "?";
  const installs = pages().flatMap(({ text }) => [...text.matchAll(/^ *(dapr init .*-k\b.*)$/gm)].map(([, line]) => line ?? ""));
  expect(installs.length).toBeGreaterThan(1);
  for (const line of installs) for (const part of [`--runtime-version ${version} `, "--wait ", "--set dapr_sidecar_injector.sidecarDropALLCapabilities=true"]) expect(`${line} `).toContain(part);
});

describe("docs/errors.md", () => {
  const text = read("docs/errors.md");

  it("has every problem with its status, title and whether to try again, and what to do", () => {
    const listed = rows(section(text, "Over HTTP"));
    expect(listed.map((row) => row.slice(0, 4))).toEqual(Object.entries(PROBLEMS).map(([code, { status, title, retryable }]) => [code, String(status), title, retryable ? "yes" : "no"]));
    expect(listed.filter((row) => (row[4] ?? "") === "")).toEqual([]);
  });

  it("has every exit code of the CLI", () => {
    expect(rows(section(text, "Exit codes of `docket`")).map(([code, name]) => [name, Number(code)])).toEqual(Object.entries(EXIT));
  });

  it("has every code that only the CLI has", () => {
    const used = sources("src/cli", ".ts").flatMap(({ text: source }) => [...source.matchAll(/new CliError\(EXIT\.\w+, "(\w+)"/g)].map((match) => match[1] ?? ""));
    expect(used.length).toBeGreaterThan(10);
    const own = used.filter((code) => !Object.hasOwn(PROBLEMS, code));
    expect(sorted(firstCells(section(text, "Codes that only `docket` has")))).toEqual(sorted([...own, "http_NNN", "not_built"]));
  });

  it("has every code of the launcher", () => {
    const codes = [...read("src/launcher/errors.ts").matchAll(/^ {2}\| "([A-Z_]+)"/gm)].map((match) => match[1] ?? "");
    expect(codes.length).toBeGreaterThan(5);
    expect(firstCells(section(text, "Codes of the launcher"))).toEqual(codes);
  });
});

describe("docs/cli.md", () => {
  const text = read("docs/cli.md");

  it("has every command, and no other", () => {
    const leaves = placesOf(buildProgram(quietIo("/"), () => async () => undefined)).filter(({ path, commands }) => path.length > 0 && path[0] !== "help" && commands.length === 0).map(({ path }) => path.filter((word) => word !== "help").join(" "));
    // A cell names a group once: `session list`, `show ID`.
    const named = text.split("\n").filter((line) => line.startsWith("| `")).map((line) => line.split("|")[1] ?? "").flatMap((cell) => {
      const spans = [...cell.matchAll(/`([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g)].map(([, first = "", second]) => ({ first, second }));
      const group = spans[0]?.first ?? "";
      const grouped = leaves.some((leaf) => leaf.startsWith(`${group} `));
      return spans.map(({ first, second }) => !grouped ? group : first === group ? `${group} ${second ?? ""}`.trim() : `${group} ${first}`);
    });
    expect(sorted(named)).toEqual(sorted(leaves.filter((leaf) => leaf.includes(" ") || !leaves.some((other) => other.startsWith(`${leaf} `)))));
  });

  it("has every exit code", () => {
    expect(rows(section(text, "Exit codes")).map(([code]) => Number(code))).toEqual(Object.values(EXIT));
  });

  it("has every code that only the CLI has", () => {
    const listed = [...section(text, "Roles and codes").split("Codes that only the CLI has")[1]?.replace(/\([^)]*\)/g, "").matchAll(/`(\w+)`/g) ?? []].map((match) => match[1] ?? "");
    expect(sorted(listed)).toEqual(sorted(firstCells(section(read("docs/errors.md"), "Codes that only `docket` has"))));
  });
});

describe("docs/state-machine.md", () => {
  const text = read("docs/state-machine.md");

  it("explains every status of a session", () => {
    expect(sorted(firstCells(section(text, "Statuses")))).toEqual(sorted(SESSION_STATUSES));
  });

  it("explains every outcome of a run", () => {
    expect(sorted(firstCells(section(text, "A run")))).toEqual(sorted(RunOutcome.options));
  });

  it("explains every status of a call, and every phase of its life", () => {
    expect(sorted(firstCells(section(text, "A tool call")))).toEqual(sorted(CallStatus.options));
    const phases = [.../export type CallState =([\s\S]*?);\n\n/.exec(read("src/session/core/state.ts"))?.[1]?.matchAll(/phase: "(\w+)"/g) ?? []].map((match) => match[1] ?? "");
    expect(phases.length).toBeGreaterThan(5);
    for (const phase of phases) expect(section(text, "A tool call")).toContain(`\`${phase}\``);
  });

  it("explains every reason of an escalation", () => {
    expect(sorted(firstCells(section(text, "Escalations")))).toEqual(sorted(EscalationReason.options));
  });
});

describe("docs/architecture.md", () => {
  const text = read("docs/architecture.md");

  it("has every channel as the code has it", () => {
    expect(rows(section(text, "Channels"))).toEqual(Object.values(CHANNELS).map((channel) => [
      channel.component, channel.topic, channel.publishers.join(", "), channel.subscribers.join(", "), channel.delivery,
    ]));
  });

  it("names every rule that lint has between rooms, and no other", () => {
    const known = [...read(".dependency-cruiser.cjs").matchAll(/(?:room\("|name: ")([a-z-]+)"/g)].map((match) => match[1] ?? "");
    const named = [...section(text, "Rooms").matchAll(/`([a-z]+(?:-[a-z]+)+)`/g)].map((match) => match[1] ?? "");
    expect(sorted(named)).toEqual(sorted(known));
  });
});
