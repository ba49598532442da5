/** The ten-minute example of docs/writing-an-agent.md is built as a user builds it, loaded, and its tool runs in a worker. */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkEvent, inputOf, toAgentEvent } from "../../../src/agent/event.js";
import { loadAgents, loadManifests, loadTools } from "../../../src/agent/loader.js";
import { routeEvent } from "../../../src/agent/route.js";
import { parseEnvelope } from "../../../src/contracts/cloudevent.js";
import { loadScripts } from "../../../src/model/script-folder.js";
import { ScriptedModel } from "../../../src/model/scripted.js";
import type { ModelMessage } from "../../../src/model/model.js";
import { writeManifests } from "../../../src/main/manifests.js";
import { deliver, harness, requestFor } from "../../support/tools/harness.js";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../..");
let dist: string;

beforeAll(() => {
  // Below the checkout, so that the compiled files find node_modules.
  mkdirSync(join(ROOT, ".docket"), { recursive: true });
  const home = mkdtempSync(join(ROOT, ".docket/hello-"));
  dist = join(home, "dist");
  // `cp -r examples/hello-agent agents/`, as the document says; beside it the sources that it imports.
  cpSync(join(ROOT, "examples/hello-agent"), join(home, "agents/hello-agent"), { recursive: true });
  for (const room of ["agent", "contracts"]) cpSync(join(ROOT, "src", room), join(home, "src", room), { recursive: true });
  writeFileSync(join(home, "package.json"), "{\"type\":\"module\"}");
  writeFileSync(join(home, "tsconfig.json"), JSON.stringify({ extends: join(ROOT, "tsconfig.json"), compilerOptions: { noEmit: false, rootDir: ".", outDir: "dist" }, include: ["src", "agents"] }));
  execFileSync(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", home], { stdio: "pipe" });
}, 120_000);
afterAll(() => { rmSync(dirname(dist), { recursive: true, force: true }); });

const event = (data: unknown): ReturnType<typeof parseEnvelope> => parseEnvelope(JSON.stringify({ specversion: "1.0", id: "e1", source: "/shop", type: "com.example.customer.signed_up", data }));

describe("the hello agent", () => {
  it("is found, takes its events to the right session, and says what the model is told", async () => {
    const agents = await loadAgents(join(dist, "agents"));
    const envelope = event({ id: 7, name: "Zoë", country: "de" });
    const routed = routeEvent(agents, envelope);
    expect(routed).toMatchObject({ ok: true, sessionId: "customer-7", agent: { name: "hello-agent" } });
    if (!routed.ok) return;
    expect(checkEvent(routed.agent, toAgentEvent(envelope))).toEqual({ ok: true });
    expect(checkEvent(routed.agent, toAgentEvent(event({ id: 8, name: "test" })))).toMatchObject({ ok: false, code: "test_account" });
    expect(checkEvent(routed.agent, toAgentEvent(event({ id: 8 })))).toMatchObject({ ok: false, code: "check_failed" });
    expect(routeEvent(agents, event({ name: "nobody" }))).toMatchObject({ ok: false, problem: { code: "session_id_missing" } });
    expect(inputOf(routed.agent, toAgentEvent(envelope))).toEqual({ ok: true, text: "A customer signed up. Name: Zoë. Country: de." });
  });

  it("has its manifest written, with the built-in tools beside it", async () => {
    const file = join(dist, "agents/manifests.json");
    await writeManifests(join(dist, "agents"), file);
    const manifests = loadManifests(file);
    expect(manifests.agents).toEqual([{ name: "hello-agent", version: "1", tools: ["greeting"] }]);
    expect(manifests.tools.map((tool) => tool.name)).toEqual(["file_list", "file_read", "file_write", "greeting", "http_get", "http_request", "sql_query"]);
    expect(readFileSync(file, "utf8")).not.toContain("Guten Tag");
  });

  it("runs its tool in a worker", async () => {
    const tools = await loadTools([join(dist, "agents")]);
    const h = harness([...tools.values()]);
    const worker = h.worker();
    await deliver(worker, requestFor(h.clock, { request: { tool: "greeting", args: "{\"country\":\"de\",\"formal\":true}" } }));
    await deliver(worker, requestFor(h.clock, { request: { callId: "call_2", tool: "greeting", args: "{\"country\":\"xx\",\"formal\":true}" } }));
    expect(h.results).toMatchObject([{ outcome: "succeeded", output: "{\"greeting\":\"Guten Tag\"}" }, { outcome: "failed", failure: { kind: "business" } }]);
  });

  it("has a script with which the scripted model plays it through", async () => {
    const model = new ScriptedModel({ scripts: loadScripts(join(ROOT, "examples")) });
    const say = (messages: readonly ModelMessage[]): ReturnType<ScriptedModel["answer"]> => model.answer({
      model: "hello-agent", instructions: "", tools: [], messages, maxOutputTokens: 100, signal: new AbortController().signal,
      context: { sessionId: "s", runId: "r", step: 1, attempt: 1 },
    });
    const user: ModelMessage = { role: "user", text: "A customer signed up. Name: Zoë. Country: de." };
    const first = await say([user]);
    expect(first.calls).toMatchObject([{ name: "greeting", args: "{\"country\":\"de\"}" }]);
    const results: ModelMessage = { role: "tool_results", results: [{ id: first.calls[0]!.id, name: "greeting", text: "{\"greeting\":\"Guten Tag\"}", isError: false }] };
    expect((await say([user, { role: "assistant", text: first.text, calls: first.calls }, results])).text).toContain("Guten Tag");
  });

  it("is shown in the document word for word", () => {
    const document = readFileSync(join(ROOT, "docs/writing-an-agent.md"), "utf8");
    for (const file of ["agent.ts", "tools/greeting.ts", "script.yaml"]) expect(document).toContain(readFileSync(join(ROOT, "examples/hello-agent", file), "utf8"));
  });
});
