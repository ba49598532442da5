/**
 * Owns: two builds of Docket side by side, and which of them a process takes when it starts. Build 2 is build 1 with the next version of what
 * is stored of a session: a counter has another name there, so that neither can read the other's documents unless they are upcast.
 */
import { cpSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { REPO_ROOT } from "./cluster.js";
import { writeManifestsApart } from "./manifests-apart.js";

export interface Builds {
  /** For `startDocket`: every app runs the live build, its agents and its policies. */
  readonly commands: Readonly<Record<"gateway" | "sessions" | "tools" | "console", readonly string[]>>;
  readonly env: Readonly<Record<string, string>>;
  readonly dirOf: (build: 1 | 2) => string;
  /** What starts from now on is of this build. */
  goLive(build: 1 | 2): void;
}

/** Files of a build beside the compiled sources, by path: agents, tools, policies. */
export type Files = Readonly<Record<string, string>>;

/** Copies what `npm run build` has made. `home` is below the checkout, so that packages are found. */
export function makeBuilds(home: string, files: Readonly<Record<1 | 2, Files>>, scripts: Files): Builds {
  const live = join(home, "live");
  const dirOf = (build: 1 | 2): string => join(home, `build-${String(build)}`);
  for (const build of [1, 2] as const) {
    cpSync(join(REPO_ROOT, "dist"), join(dirOf(build), "dist"), { recursive: true, filter: (path) => !path.startsWith(join(REPO_ROOT, "dist/agents")) });
    write(dirOf(build), files[build]);
    writeManifestsApart(join(dirOf(build), "agents"));
  }
  write(home, scripts);
  patch(join(dirOf(2), "dist/src/contracts/stored-version.js"), "const STEPS = [];", `const STEPS = [{
    document: ({ totals: { deduplicated, ...totals }, ...document }) => ({ ...document, totals: { ...totals, repeated: deduplicated } }),
    events: (events) => events,
}];`);
  patch(join(dirOf(2), "dist/src/session/core/evolve.js"), "deduplicated: 0", "repeated: 0");
  const goLive = (build: 1 | 2): void => {
    symlinkSync(dirOf(build), `${live}.next`);
    renameSync(`${live}.next`, live);
  };
  goLive(1);
  const command = (app: string): string[] => ["node", join(live, "dist/src/main", `${app}.js`)];
  return {
    dirOf, goLive, commands: { gateway: command("gateway"), sessions: command("sessions"), tools: command("tools"), console: command("console") },
    env: { DOCKET_AGENTS_DIR: join(live, "agents"), DOCKET_POLICIES_DIR: join(live, "policies"), DOCKET_SCRIPTS_DIR: join(home, "scripts") },
  };
}

function write(dir: string, files: Files): void {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(dir, path, ".."), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
}

function patch(file: string, from: string, to: string): void {
  const text = readFileSync(file, "utf8");
  if (text.split(from).length !== 2) throw new Error(`${file} does not have "${from}" once: build 2 cannot be made of it`);
  writeFileSync(file, text.replace(from, to));
}
