import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Problem } from "../../../src/contracts/problems.js";
import { LimitedModel } from "../../../src/model/limits.js";
import { createModels } from "../../../src/model/registry.js";
import { loadScripts } from "../../../src/model/script-folder.js";
import { MemoryRateLedger } from "../../support/memory-rate-ledger.js";
import { request } from "./request.js";

function problem(act: () => unknown): Problem {
  try {
    act();
  } catch (error) {
    if (error instanceof Problem) return error;
  }
  throw new Error("expected a Problem");
}

describe("model names", () => {
  const models = createModels({ anthropic: { apiKey: "k" }, openai: { baseUrl: "http://127.0.0.1:1/v1" }, servers: { ollama: { baseUrl: "http://127.0.0.1:2/v1" } } });

  it.each([["anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5"], ["openai:meta/llama-3.3", "openai", "meta/llama-3.3"], ["ollama:llama3.2:1b", "ollama", "llama3.2:1b"], ["scripted:echo", "scripted", "echo"]])(
    "%s is of %s", (full, provider, name) => {
      const found = models.resolve(full);
      expect([found.model.provider, found.name]).toEqual([provider, name]);
    });

  it.each([
    [models, "antropic:claude", 'did you mean "anthropic"'], [models, "claude-sonnet-4-5", "has no provider"], [models, "", "has no provider"], [models, "anthropic:", "names no model"],
    [models, "__proto__:x", "unknown provider"], [createModels({}), "anthropic:claude-sonnet-4-5", "is not configured"],
  ])("%#: %s is refused with what to do", (registry, full, says) => {
    const refused = problem(() => registry.resolve(full));
    expect(refused).toMatchObject({ code: "config_invalid" });
    expect(refused.message).toContain(says);
    expect(refused.hint).toBeTruthy();
  });

  it("does not let a server take the name of a built-in provider", () => {
    expect(problem(() => createModels({ servers: { scripted: { baseUrl: "http://x/v1" } } })).message).toContain("built-in");
  });

  it("limits what goes over a provider key, and not scripts", () => {
    const limited = createModels({ anthropic: { apiKey: "k" }, ledger: new MemoryRateLedger({}), prices: { "claude-x": { input: 1, output: 1, cacheRead: 1, cacheWrite: 1 } } });
    expect(limited.resolve("anthropic:claude-x").model).toBeInstanceOf(LimitedModel);
    expect(limited.resolve("anthropic:claude-x").model.reserveUsd(request({ model: "claude-x" }))).toBeGreaterThan(0);
    expect(limited.resolve("scripted:echo").model).not.toBeInstanceOf(LimitedModel);
  });
});

describe("a folder of scripts", () => {
  const folder = (files: Record<string, string>): string => {
    const root = mkdtempSync(join(tmpdir(), "docket-scripts-"));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    return root;
  };

  it("is read from YAML and JSON, large integers kept, other files left alone", () => {
    const scripts = loadScripts(folder({
      "triage/script.yaml": "rules:\n  - when: { user: /ord-(\\d+)/ }\n    call: { tool: refund, args: { id: 9007199254740993, n: 2 } }\n",
      "mail/script.json": '{"name":"post","rules":[{"say":"hi","call":[{"tool":"t","args":{"id":9007199254740993}}]}]}',
      "mail/agent.ts": "export {}", "README.md": "x",
    }));
    expect([...scripts.keys()]).toEqual(["post", "triage"]);
    expect(scripts.get("triage")!.rules[0]).toMatchObject({ when: { user: "/ord-(\\d+)/" }, call: [{ tool: "refund", args: { id: 9007199254740993n, n: 2 } }] });
    expect(scripts.get("post")!.rules[0]!.call![0]!.args).toEqual({ id: 9007199254740993n });
  });

  it.each([
    ["unknown words", "rules: [{ sya: hi }]", "sya"], ["broken patterns", "rules: [{ when: { user: '/(/' } }]", "rules.0.when.user"],
    ["broken YAML", "rules: [", "cannot be read"], ["no rules", "rules: []", "rules"],
  ])("is refused for %s, naming the file and the place", (_, text, says) => {
    const refused = problem(() => loadScripts(folder({ "a/script.yaml": text })));
    expect(refused.message).toContain("a/script.yaml");
    expect(refused.message).toContain(says);
  });

  it("is refused where two scripts have one name", () => {
    expect(problem(() => loadScripts(folder({ "a/script.yaml": "name: x\nrules: [{ say: a }]", "b/script.yaml": "name: x\nrules: [{ say: b }]" }))).message).toContain('"x"');
  });
});
