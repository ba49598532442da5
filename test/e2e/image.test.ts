/** The image without a container engine: the steps of the Dockerfile that lay it out, run into a folder, and the four apps started from there. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { REPO_ROOT } from "../support/cluster.js";
import { freshSession, startDocket, type Docket } from "../support/docket.js";

interface RunFile { apps: { appID: string; appDirPath: string; command: string[]; configFilePath: string }[] }

let home: string;
let image: string;

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "docket-image-"));
  image = join(home, "app");
  execFileSync(process.execPath, [join(REPO_ROOT, "scripts/image.mjs"), image], { stdio: "inherit" });
});
afterAll(() => { rmSync(home, { recursive: true, force: true }); });

describe("the Dockerfile", () => {
  const text = readFileSync(join(REPO_ROOT, "Dockerfile"), "utf8");
  const instructions = text.split("\n").filter((line) => /^[A-Z]+ /.test(line)).map((line) => /^([A-Z]+) (.*)$/.exec(line)!.slice(1, 3) as [string, string]);
  const last = instructions.slice(instructions.map(([word]) => word).lastIndexOf("FROM"));

  it("lays the image out by the script that this test runs, and takes nothing else into it", () => {
    expect(instructions.some(([word, rest]) => word === "RUN" && rest.includes("node scripts/image.mjs /app"))).toBe(true);
    expect(last.filter(([word]) => ["COPY", "ADD", "RUN"].includes(word))).toEqual([["COPY", "--from=build /app /app"]]);
  });

  // DL3006, DL3007: tags that say a version; DL3002: a user that is not root; DL3025: JSON; DL3020: COPY; DL3045, DL3000: an absolute WORKDIR before a relative COPY; DL3016, DL3003: no unpinned install, no cd.
  it("keeps hadolint's rules that apply", () => {
    for (const [, image_] of instructions.filter(([word]) => word === "FROM")) expect(image_).toMatch(/^node:\d+\.\d+\.\d+-[a-z-]+( AS [a-z]+)?$/);
    expect(last.filter(([word]) => word === "USER").at(-1)?.[1]).toMatch(/^[1-9]\d+:[1-9]\d+$/);
    expect(JSON.parse(last.find(([word]) => word === "ENTRYPOINT")![1])).toEqual(["node", "/app/bin/app.mjs"]);
    expect(instructions.some(([word]) => word === "ADD" || word === "MAINTAINER")).toBe(false);
    for (const [word, rest] of instructions) {
      if (word === "WORKDIR") expect(rest).toMatch(/^\//);
      if (word === "RUN") expect(rest).not.toMatch(/npm install|\bcd\b|sudo|apt-get/);
    }
  });

  it("runs as the user that the manifests name, on a Node that the engines allow", () => {
    const user = last.find(([word]) => word === "USER")![1].split(":")[0];
    expect(readFileSync(join(REPO_ROOT, "k8s/base/core/gateway.yaml"), "utf8")).toContain(`runAsUser: ${user ?? ""}`);
  });
});

describe("the image", () => {
  it("holds compiled code and what it needs to run: no sources, no tests, no tools of the build", () => {
    expect(readdirSync(image).sort()).toEqual(["LICENSE", "agents", "bin", "dist", "node_modules", "package-lock.json", "package.json", "policies"]);
    for (const absent of ["typescript", "vitest", "eslint", "playwright-core"]) expect(existsSync(join(image, "node_modules", absent))).toBe(false);
    const { dependencies } = JSON.parse(readFileSync(join(image, "package.json"), "utf8")) as { dependencies: Record<string, string> };
    for (const name of Object.keys(dependencies)) expect({ name, there: existsSync(join(image, "node_modules", name)) }).toEqual({ name, there: true });
    expect(readdirSync(image, { recursive: true, encoding: "utf8" }).filter((file) => !file.startsWith("node_modules") && /\.tsx?$|\.test\.|\.env$/.test(file))).toEqual([]);
  });

  it("says what it knows when it is given no app, or a wrong one", () => {
    for (const args of [[], ["gatway"], ["../cli/main"]]) {
      const said = (() => { try { return execFileSync(process.execPath, [join(image, "bin/app.mjs"), ...args], { stdio: "pipe" }).toString(); } catch (error) { return String((error as { stderr: Buffer }).stderr); } })();
      expect(said).toContain("give one of gateway, sessions, tools, console, setup-cluster as the first argument");
    }
  });

  describe("started", () => {
    let docket: Docket;

    beforeAll(async () => {
      const runFile = parse(readFileSync(join(REPO_ROOT, "dapr.yaml"), "utf8")) as RunFile;
      const apps = runFile.apps.map((app) => ({ ...app, appDirPath: image, command: ["node", join(image, "bin/app.mjs"), app.appID], configFilePath: join(REPO_ROOT, app.configFilePath) }));
      writeFileSync(join(home, "dapr.yaml"), stringify({ ...runFile, apps }));
      docket = await startDocket({ runFile: join(home, "dapr.yaml") });
    });
    afterAll(async () => { await docket.close(); });

    it("does the work: prompt, tool, answer", async () => {
      const sessionId = freshSession("image");
      const outcome = await docket.ended(await docket.prompt(sessionId, "What is the state of order 1001?"));
      expect(outcome).toMatchObject({ state: "ended", outcome: "completed" });
      expect((await docket.journal(sessionId)).flatMap(({ events }) => events).map(({ type }) => type)).toContain("RunEnded");
    });

    it("serves the console's pages", async () => {
      expect(await (await fetch(`${docket.test.stack.urls.console ?? ""}/`, { headers: { accept: "text/html" } })).text()).toContain("<html");
    });
  });
});
