/** What the pages point to is there: files, headings, scripts, commands, messages. And no file knows whose machine it was written on. */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import type { Command } from "commander";
import { describe, expect, it } from "vitest";
import type { CliIo } from "../../../src/cli/io.js";
import { buildProgram } from "../../../src/cli/program.js";
import { firstCells, pages, read, ROOT, sources, type Page } from "./pages.js";

/** Code spans and lines of code blocks. */
function codeOf(text: string): string[] {
  const blocks = [...text.matchAll(/^```[^\n]*\n([\s\S]*?)^```/gm)].flatMap((match) => (match[1] ?? "").split("\n"));
  const indented = text.split("\n").filter((line) => line.startsWith("    "));
  const spans = [...text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/`([^`\n]+)`/g)].map((match) => match[1] ?? "");
  return [...blocks, ...indented, ...spans].map((line) => line.trim().replace(/^\$ /, ""));
}

/** As GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map((match) => (match[1] ?? "").toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-"));
}

function brokenLinks({ path, text }: Page): string[] {
  const targets = [...text.replace(/^```[\s\S]*?^```/gm, "").matchAll(/\]\(([^)\s]+)\)/g)].map((match) => match[1] ?? "").filter((target) => !/^[a-z]+:/.test(target));
  return targets.filter((target) => {
    const [file = "", anchor] = target.split("#");
    const at = file === "" ? path : normalize(join(dirname(path), file));
    return !existsSync(join(ROOT, at)) || (anchor !== undefined && !anchorsOf(read(at)).includes(anchor));
  }).map((target) => `${path}: ${target}`);
}

const program = buildProgram({ out: () => undefined, err: () => undefined } as unknown as CliIo, () => () => Promise.resolve());

/** What is wrong with one command line of `docket`, or nothing. */
function wrongCommand(line: string): string | undefined {
  const words = line.replace(/^npx /, "").split(/[\s|;]+/).slice(1);
  let command: Command = program;
  while (command.commands.length > 0 && words[0] !== undefined && /^[a-z][a-z-]*$/.test(words[0])) {
    const next = command.commands.find((child) => child.name() === words[0]);
    if (next === undefined) return `no command "${words[0]}" in: ${line}`;
    command = next;
    words.shift();
  }
  const known = [...command.options, ...program.options].flatMap((option) => [option.long, option.short]);
  const flag = words.find((word) => /^--[a-z]/.test(word) && word !== "--help" && !known.includes(word.split("=")[0]));
  return flag === undefined ? undefined : `no option ${flag} in: ${line}`;
}

describe("the pages", () => {
  it("link to files and headings that exist", () => {
    expect(pages().flatMap(brokenLinks)).toEqual([]);
  });

  it("name scripts that package.json has", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const named = pages().flatMap(({ text }) => [...text.matchAll(/\bnpm run ([a-z][a-z0-9:-]*)/g)].map((match) => match[1] ?? ""));
    expect(named).toContain("dev");
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });

  it("name commands and options that docket has", () => {
    const lines = pages().flatMap(({ text }) => codeOf(text)).filter((line) => /^(npx )?docket (?!is )[a-z-]/.test(line));
    expect(lines.length).toBeGreaterThan(20);
    expect(lines.map(wrongCommand).filter((wrong) => wrong !== undefined)).toEqual([]);
  });

  it("name tests, sources and examples that exist", () => {
    const named = pages().flatMap(({ path, text }) => [...text.matchAll(/`((?:src|test|examples|components|scripts|agents|policies)\/[\w./-]+\.(?:ts|mjs|yaml))`/g)].map((match) => ({ path, file: match[1] ?? "" })));
    expect(named.filter(({ file }) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it("quote messages that the code has", () => {
    const code = [...sources("src", ".ts"), ...sources("scripts", ".mjs"), ...sources("bin", ".mjs")].map(({ text }) => text).join("\n");
    const messages = firstCells(read("docs/troubleshooting.md")).flatMap((cell) => /^`?([^`]+)`?/.exec(cell)?.[1] ?? []).filter((text) => / /.test(text) && !/^(\d|nothing|the first|[A-Z]+_)/.test(text));
    expect(messages.length).toBeGreaterThan(25);
    const unknown = messages.filter((message) => message.split("…").some((part) => !code.includes(part.trim())));
    expect(unknown).toEqual([]);
  });
});

describe("the repository", () => {
  it("names no folder of a machine and no package registry", () => {
    const files = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], { cwd: ROOT, encoding: "utf8" }).split("\0").filter((file) => file !== "" && existsSync(join(ROOT, file)));
    const machine = /(?<![\w.~-])\/(?:work|root|home\/\w+)\/|\bregistry\.[a-z0-9-]+\.[a-z]{2,}|proxy\.golang\.org/;
    const found = files.flatMap((file) => readFileSync(join(ROOT, file), "utf8").split("\n").flatMap((line, at) => (machine.test(line) ? [`${file}:${String(at + 1)}: ${line.trim().slice(0, 120)}`] : [])));
    expect(found).toEqual([]);
  });
});
