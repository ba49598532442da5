/**
 * Owns: hadolint's rules that can meet a Dockerfile like ours, by their numbers. hadolint itself is a Haskell program that the tests cannot
 * bring along. Reads instructions and stages, and of shell text only what a rule asks for.
 */
interface Instruction { readonly line: number; readonly name: string; readonly args: string }
interface Stage { readonly from: string; readonly alias: string | undefined; readonly instructions: readonly Instruction[] }

type Rule = (stages: readonly Stage[]) => (readonly [line: number, problem: string])[];

/** What hadolint would say, as `DL3007 line 2: …`; empty when nothing. */
export function dockerfileProblems(text: string): string[] {
  const stages = stagesOf(instructionsOf(text));
  return Object.entries(RULES).flatMap(([code, rule]) => rule(stages).map(([line, problem]) => `${code} line ${String(line)}: ${problem}`));
}

function instructionsOf(text: string): Instruction[] {
  const found: Instruction[] = [];
  let begun: { line: number; text: string } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (/^\s*(#|$)/.test(line)) continue;
    begun = begun === undefined ? { line: index + 1, text: line } : { line: begun.line, text: `${begun.text} ${line.trim()}` };
    if (begun.text.endsWith("\\")) { begun.text = begun.text.slice(0, -1).trimEnd(); continue; }
    const [, name = "", args = ""] = /^\s*(\w+)\s*(.*)$/.exec(begun.text) ?? [];
    found.push({ line: begun.line, name: name.toUpperCase(), args });
    begun = undefined;
  }
  return found;
}

function stagesOf(instructions: readonly Instruction[]): Stage[] {
  const stages: { from: string; alias: string | undefined; instructions: Instruction[] }[] = [];
  for (const instruction of instructions) {
    const [, from = "", alias] = instruction.name === "FROM" ? /^(?:--\S+\s+)*(\S+)(?:\s+as\s+(\S+))?$/i.exec(instruction.args) ?? [] : [];
    if (instruction.name === "FROM") stages.push({ from, alias, instructions: [] });
    stages.at(-1)?.instructions.push(instruction);
  }
  return stages;
}

/** A rule about single instructions of some names. */
const each = (names: string, problem: (args: string, before: readonly Instruction[]) => string | false): Rule => (stages) => stages.flatMap(({ instructions }) => instructions.flatMap((one, index) => {
  const found = names.split(" ").includes(one.name) ? problem(one.args, instructions.slice(0, index)) : false;
  return found === false ? [] : [[one.line, found] as const];
}));

/** A rule about how often a stage has an instruction. */
const atMostOnce = (name: string): Rule => (stages) => stages.flatMap(({ instructions }) => instructions.filter((one) => one.name === name).slice(1).map(({ line }) => [line, `a second ${name}, of which the last counts`] as const));

/** Images that are another stage, or nothing, need no tag. */
const tagOf = (image: string): string | undefined => /^[^@]*?:([^/:@]+)(?:@.*)?$/.exec(image)?.[1];
const installs = (args: string): string[] => [...args.matchAll(/apt-get\s+(?:-\S+\s+)*install\s+([^&|;]*)/g)].map(([, list]) => list ?? "");

const RULES: Readonly<Record<string, Rule>> = {
  DL3000: each("WORKDIR", (args) => !/^["']?[/$]/.test(args) && "WORKDIR is not absolute"),
  DL3002: (stages) => {
    const last = stages.at(-1);
    const user = last?.instructions.findLast(({ name }) => name === "USER");
    return user !== undefined && !/^(root|0)(:|$)/.test(user.args) ? [] : [[user?.line ?? 0, "the image's user is root"]];
  },
  DL3003: each("RUN", (args) => /(^|&&|;)\s*cd\s/.test(args) && "cd, where WORKDIR is meant"),
  DL3004: each("RUN", (args) => /\bsudo\b/.test(args) && "sudo"),
  DL3006: (stages) => stages.flatMap(({ from, instructions }, index) => (from === "scratch" || from.includes("@") || tagOf(from) !== undefined || stages.slice(0, index).some(({ alias }) => alias === from) ? [] : [[instructions[0]?.line ?? 0, `${from} has no tag`] as const])),
  DL3007: (stages) => stages.flatMap(({ from, instructions }) => (tagOf(from) === "latest" ? [[instructions[0]?.line ?? 0, `${from}: latest is another image each day`] as const] : [])),
  DL3008: each("RUN", (args) => installs(args).some((list) => list.split(/\s+/).some((word) => /^[a-z0-9]/.test(word) && !word.includes("="))) && "apt-get install without versions"),
  DL3009: each("RUN", (args) => installs(args).length > 0 && !/rm\s+-rf?\s+\/var\/lib\/apt\/lists/.test(args) && "the lists of apt-get stay in the image"),
  DL3015: each("RUN", (args) => installs(args).length > 0 && !args.includes("--no-install-recommends") && "apt-get install takes what is only recommended"),
  DL3016: each("RUN", (args) => [...args.matchAll(/npm\s+(?:-\S+\s+)*(?:install|i|add)\s+([^&|;]*)/g)].some(([, list]) => (list ?? "").split(/\s+/).some((word) => /^[@a-z]/.test(word) && !/.@\d/.test(word))) && "npm install without versions"),
  DL3020: each("ADD", (args) => !/^(--\S+\s+)*https?:|\.(tar|tgz|gz|xz|bz2)/.test(args) && "ADD, where COPY is meant"),
  DL3022: (stages) => stages.flatMap(({ instructions }, index) => instructions.flatMap(({ line, name, args }) => {
    const from = name === "COPY" ? /--from=(\S+)/.exec(args)?.[1] : undefined;
    return from === undefined || stages.slice(0, index).some(({ alias }) => alias === from) || tagOf(from) !== undefined ? [] : [[line, `COPY --from=${from}, which is no stage before this one`] as const];
  })),
  DL3024: (stages) => stages.flatMap(({ alias, instructions }, index) => (alias !== undefined && stages.slice(0, index).some((other) => other.alias === alias) ? [[instructions[0]?.line ?? 0, `a second stage ${alias}`] as const] : [])),
  DL3025: each("CMD ENTRYPOINT", (args) => !/^\[\s*".*"\s*\]$/.test(args) && "not in JSON: a shell is between the signals and the process"),
  DL3027: each("RUN", (args) => /(^|&&|;)\s*apt\s/.test(args) && "apt is for people, apt-get for scripts"),
  DL3045: each("COPY", (args, before) => !/^[/$"[]/.test(args.split(/\s+/).at(-1) ?? "") && !before.some(({ name }) => name === "WORKDIR") && "COPY to a relative place without WORKDIR"),
  DL3059: each("RUN", (_args, before) => before.at(-1)?.name === "RUN" && "a RUN right after a RUN is one more layer"),
  DL4000: each("MAINTAINER", () => "MAINTAINER is no more"),
  DL4003: atMostOnce("CMD"),
  DL4004: atMostOnce("ENTRYPOINT"),
  DL4006: each("RUN", (args, before) => /[^|]\|[^|]/.test(args) && !before.some(({ name, args: shell }) => name === "SHELL" && shell.includes("pipefail")) && "a pipe without SHELL with pipefail hides what fails"),
};
