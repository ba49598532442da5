/** What users wrote is found, and every fault names its file. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadAgents, loadKeptVersions, loadManifests, loadTools } from "../../../src/agent/loader.js";
import { checkAgents, writeManifests } from "../../../src/main/manifests.js";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../..");
let dir: string;
beforeEach(() => {
  mkdirSync(join(ROOT, ".docket"), { recursive: true });
  dir = mkdtempSync(join(ROOT, ".docket/loader-"));
});
afterEach(() => { rmSync(dir, { recursive: true, force: true }); });

function put(path: string, text: string): void {
  mkdirSync(dirname(join(dir, path)), { recursive: true });
  writeFileSync(join(dir, path), text);
}
const agentText = (name: string, tools: string[] = [], version = "1"): string => `export const agent = ${JSON.stringify({ name, version, description: "d", instructions: "i", tools, triggers: [] })};`;
const toolText = (name: string): string => `export const helper = 1; export const tool = { kind: "docket.tool", manifest: { name: ${JSON.stringify(name)}, description: "d", inputSchema: {}, effects: "none", critical: false, reconcilable: false, timeoutMs: 1, outputCapBytes: 1, maxTries: 1, risk: "low", allowedDecisions: ["approve"] }, run: async () => 1, violations: async () => [] };`;

describe("loading", () => {
  it("agents come in the order of their folders; folders without agent.js and a missing directory are nothing", async () => {
    put("b/agent.js", agentText("beta"));
    put("a/agent.js", agentText("alpha"));
    put("empty/readme.md", "");
    expect((await loadAgents(dir)).map((agent) => agent.name)).toEqual(["alpha", "beta"]);
    expect(await loadAgents(join(dir, "none"))).toEqual([]);
  });

  it("every wrong agent is named with its file", async () => {
    put("a/agent.js", "export const agnet = {};");
    put("b/agent.js", agentText("Not A Name"));
    put("c/agent.js", "throw new Error('boom');");
    put("d/agent.js", agentText("same"));
    put("e/agent.js", agentText("same"));
    const error = await loadAgents(dir).catch((problem: unknown) => problem as Error);
    for (const part of ["a/agent.js: does not export `agent`", "b/agent.js: agent \"Not A Name\"", "c/agent.js: boom", "e/agent.js: agent \"same\" is defined twice"]) expect((error as Error).message).toContain(part);
  });

  it("versions that sessions keep are found beside their agent, and their tools must exist too", async () => {
    put("a/agent.js", agentText("alpha", [], "3"));
    put("a/versions/v1.js", agentText("alpha", ["gone"], "1"));
    put("a/versions/v2.js", agentText("alpha", [], "2"));
    const agents = await loadAgents(dir);
    expect(agents.map(({ version }) => version)).toEqual(["3"]);
    expect((await loadKeptVersions(dir, agents)).map(({ version }) => version)).toEqual(["1", "2"]);
    await expect(writeManifests(dir, join(dir, "manifests.json"))).rejects.toThrow(/agent alpha: names the tool "gone"/);
    put("a/versions/v3.js", agentText("alpha", [], "3"));
    put("a/versions/other.js", agentText("beta"));
    await expect(loadKeptVersions(dir, agents)).rejects.toThrow(/other\.js: is a version of agent "beta", which is not installed; .*v3\.js: version "3" of agent "alpha" is defined twice/);
  });

  it("tools are found in every agent's folder; a name is unique in the installation", async () => {
    put("a/tools/one.js", toolText("one"));
    put("b/tools/two.js", toolText("two"));
    put("b/tools/_shared.js", "export const x = 1;");
    put("b/tools/notes.md", "");
    expect([...(await loadTools([dir])).keys()]).toEqual(["one", "two"]);
    put("c/tools/again.js", toolText("one"));
    put("c/tools/none.js", "export const x = 1;");
    await expect(loadTools([dir])).rejects.toThrow(/again\.js: tool "one" is already defined by .*a\/tools\/one\.js.*none\.js: exports no tool/);
  });

  it("an agent whose tool does not exist fails the build, with the nearest name", async () => {
    put("a/agent.js", agentText("alpha", ["refnd", "http_get"]));
    put("a/tools/refund.js", toolText("refund"));
    await expect(writeManifests(dir, join(dir, "manifests.json"))).rejects.toThrow(/agent alpha: names the tool "refnd", which does not exist; did you mean "refund"\?/);
  });

  it("a tool named like a built-in one fails the build", async () => {
    put("a/tools/mine.js", toolText("http_get"));
    await expect(writeManifests(dir, join(dir, "manifests.json"))).rejects.toThrow(/already defined by a built-in tool/);
  });

  it("a manifest file that is missing, broken or inconsistent is refused", () => {
    const file = join(dir, "manifests.json");
    expect(() => loadManifests(file)).toThrow(/does not exist/);
    writeFileSync(file, "{");
    expect(() => loadManifests(file)).toThrow(/is not JSON/);
    writeFileSync(file, "{\"tools\":[{}],\"agents\":[]}");
    expect(() => loadManifests(file)).toThrow(/tools\.0\.name/);
    writeFileSync(file, "{\"tools\":[],\"agents\":[{\"name\":\"a\",\"version\":\"1\",\"tools\":[\"x\"]}]}");
    expect(() => loadManifests(file)).toThrow(/names the tool "x"/);
  });
});

describe("the build", () => {
  const agent = (name: string, model: string, types: readonly string[]) => ({ name, model, triggers: types.map((type) => ({ types: [type] })) });

  it("refuses a scripted model without a script, and says which was meant", () => {
    expect(() => checkAgents([agent("mine", "scripted:mne", [])], ["mine"])).toThrow(/agent mine: its model "scripted:mne" has no script \(did you mean "mine"\?\)/);
    expect(() => checkAgents([agent("a", "scripted:echo", []), agent("b", "anthropic:claude-sonnet-5-5", [])], [])).not.toThrow();
  });

  it("refuses two agents that wait for the same type: the second would never get it", () => {
    expect(() => checkAgents([agent("a", "scripted:echo", ["com.x.y"]), agent("b", "scripted:echo", ["com.x.y"])], [])).toThrow(/agent b: waits for "com.x.y", which agent a takes already/);
    expect(() => checkAgents([agent("a", "scripted:echo", ["com.x.y", "com.x.y"]), agent("b", "scripted:echo", ["com.x.*"])], [])).not.toThrow();
  });
});
