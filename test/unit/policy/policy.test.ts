import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Problem } from "../../../src/contracts/problems.js";
import { compilePolicy } from "../../../src/session/core/policy/compile.js";
import { judge, type CallFacts } from "../../../src/session/core/policy/judge.js";
import { lintPolicy } from "../../../src/session/core/policy/lint.js";
import { globFits } from "../../../src/session/core/policy/policy.js";
import { manifestOf } from "../../support/manifests.js";

const policyOf = (rules: string) => compilePolicy([{ file: "p.yaml", text: `version: 1\nrules:\n${rules}` }]);
const rule = (id: string, verdict: string, more = "") => `  - { id: ${id}, verdict: ${verdict}, reason: because ${id}${more === "" ? "" : `, ${more}`} }\n`;
const facts = (overrides: Partial<CallFacts> = {}): CallFacts => ({
  toolName: "refund", argsText: '{"amount":50}', session: { id: "s1", tenant: "default", agent: "orders" },
  principal: { id: "ann", class: "person", roles: ["operator"] }, budget: { spentUsd: 0.1, budgetUsd: 1 }, ...overrides,
});
const refund = manifestOf();
const faultsOf = (text: string): string[] => {
  try { compilePolicy([{ file: "p.yaml", text }]); } catch (error) { return (error as Problem).errors?.map((e) => `${e.path}: ${e.message}`) ?? []; }
  throw new Error("compiled");
};

describe("verdicts", () => {
  it.each([
    ["allow", rule("a", "allow"), "allow", "a"],
    ["ask beats allow", rule("a", "allow") + rule("b", "ask"), "ask", "b"],
    ["deny beats ask", rule("b", "ask") + rule("c", "deny") + rule("a", "allow"), "deny", "c"],
    ["other tools and agents do not count", rule("a", "deny", "match: { tools: [mail*] }") + rule("b", "deny", "match: { agents: [files] }") + rule("c", "allow", 'match: { tools: ["re*d"] }'), "allow", "c"],
    ["conditions hold or not", rule("a", "allow", 'when: "args.amount <= 50"') + rule("b", "ask", 'when: "args.amount > 50"'), "allow", "a"],
    ["facts are seen", rule("a", "allow") + rule("b", "deny", `when: 'session.agent == "orders" && "operator" in principal.roles && budget.spentUsd < budget.budgetUsd && tool.effects == "once"'`), "deny", "b"],
  ])("%s", (_name, rules, verdict, id) => {
    expect(judge(policyOf(rules), refund, facts())).toMatchObject({ verdict, rule: id, policyVersion: expect.stringMatching(/^p-[0-9a-f]{12}$/) as unknown });
  });

  it("nothing matching: the tool's own default, else ask", () => {
    const none = policyOf("  []\n".replace("  []", "  - { id: x, verdict: deny, reason: x, match: { tools: [other] } }"));
    expect(judge(none, refund, facts())).toMatchObject({ verdict: "ask", rule: "no-rule", risk: "medium", onExpiry: "reject", approvers: { roles: [], quorum: 1, excludeRequester: false } });
    expect(judge(none, manifestOf({ defaultVerdict: "allow" }), facts())).toMatchObject({ verdict: "allow", rule: "tool-default" });
  });

  it("several asks merge to the strictest", () => {
    const policy = policyOf(
      rule("a", "ask", "risk: high, expiresIn: 24h, onExpiry: keep, allowed: [approve, reject], approvers: { roles: [finance, lead], quorum: 2 }")
      + rule("b", "ask", "expiresIn: 30m, onExpiry: escalate, approvers: { roles: [lead], excludeRequester: true }") + rule("c", "ask"));
    expect(judge(policy, refund, facts())).toEqual({
      verdict: "ask", rule: "a,b,c", policyVersion: policy.version, reason: "because a; because b; because c", risk: "high", allowed: ["approve", "reject"],
      allowSession: true, approvers: { roles: ["lead"], quorum: 2, excludeRequester: true }, onExpiry: "escalate", expiresInMs: 1_800_000,
    });
  });

  it("roles without a common one leave only admin; decisions without a common one leave only reject; risk is never lowered", () => {
    const policy = policyOf(rule("a", "ask", "risk: low, allowed: [approve], approvers: { roles: [finance] }") + rule("b", "ask", "allowed: [modify], approvers: { roles: [legal] }"));
    expect(judge(policy, refund, facts())).toMatchObject({ risk: "medium", allowed: ["reject"], approvers: { roles: ["admin"] } });
  });

  it("a condition that fails at run time counts against the call", () => {
    const failing = `when: 'args.missing > 5'`;
    expect(judge(policyOf(rule("a", "allow", failing)), refund, facts())).toMatchObject({ verdict: "ask", rule: "no-rule" });
    expect(judge(policyOf(rule("a", "allow") + rule("b", "ask", failing)), refund, facts())).toMatchObject({ verdict: "ask", reason: "because b (its condition could not be evaluated: No such key: missing)" });
    expect(judge(policyOf(rule("a", "allow") + rule("b", "deny", `when: 'args.amount'`)), refund, facts())).toMatchObject({ verdict: "deny" });
    expect(judge(policyOf(rule("a", "allow", "when: 'args.amount > 1'")), refund, facts({ argsText: "{broken" }))).toMatchObject({ verdict: "ask" });
  });

  it("sees integers beyond 2^53 exactly, and prototypes not at all", () => {
    const exact = policyOf(rule("a", "deny", "when: 'args.id == 9007199254740993'") + rule("b", "allow"));
    expect(judge(exact, refund, facts({ argsText: '{"id":9007199254740993}' })).verdict).toBe("deny");
    expect(judge(exact, refund, facts({ argsText: '{"id":9007199254740992}' })).verdict).toBe("allow");
    expect(judge(policyOf(rule("a", "allow", "when: 'args.admin == true'")), refund, facts({ argsText: '{"__proto__":{"admin":true}}' })).verdict).toBe("ask");
  });

  it("whatever the arguments, adding a rule never makes the verdict milder, and order never matters", () => {
    const pool = [rule("a", "allow"), rule("b", "ask", "when: 'args.amount > 10'"), rule("c", "deny", "when: 'args.amount > 100'"), rule("d", "ask", "when: 'args.note.contains(\"x\")'"), rule("e", "allow", "when: 'args.ok'")];
    const rank = { allow: 0, ask: 1, deny: 2 };
    fc.assert(fc.property(fc.shuffledSubarray(pool, { minLength: 1 }), fc.constantFrom(...pool), fc.json(), (rules, extra, argsText) => {
      const verdict = judge(policyOf(rules.join("")), manifestOf({ defaultVerdict: "allow" }), facts({ argsText }));
      expect(judge(policyOf([...rules].reverse().join("")), manifestOf({ defaultVerdict: "allow" }), facts({ argsText })).verdict).toBe(verdict.verdict);
      if (rules.includes(extra)) return;
      expect(rank[judge(policyOf([...rules, extra].join("")), manifestOf({ defaultVerdict: "allow" }), facts({ argsText })).verdict]).toBeGreaterThanOrEqual(rank[verdict.verdict]);
    }));
  });
});

describe("loading", () => {
  it("reports all faults at once, each with file, line, rule, and the nearest word", () => {
    const faults = faultsOf(`version: 1
rules:
  - id: one
    verdict: alow
    reason: x
  - id: two
    verdict: ask
    reason: x
    wen: true
    match: { tool: [a] }
  - id: three
    verdict: ask
    reason: x
    when: tol.name == "refund"
  - id: four
    verdict: allow
    reason: x
    expiresIn: 24h
  - id: four
    verdict: deny
    reason: x
  - id: four
    verdict: deny
    reason: x
    when: args.amount >
`);
    expect(faults).toHaveLength(6);
    expect(faults[0]).toMatch(/^p\.yaml:4 one: verdict: .*got "alow" \(did you mean "allow"\?\)/);
    expect(faults.join("\n")).toMatch(/p\.yaml:9 two: unknown key "wen" \(did you mean "when"\?\)/);
    expect(faults.join("\n")).toMatch(/p\.yaml:10 two: unknown key "tool" \(did you mean "tools"\?\)/);
    expect(faults.join("\n")).toMatch(/p\.yaml:14 three: the condition does not compile: Unknown variable: tol \(did you mean "tool"\?\).*\n\n> +1 \| tol\.name == "refund"\n +\^/s);
    expect(faults.join("\n")).toMatch(/p\.yaml:18 four: "expiresIn" means something only where the verdict is ask/);
    expect(faults.join("\n")).toMatch(/p\.yaml:25 four: .*Unexpected token: EOF/);
  });

  it.each([["not YAML", "rules: [", /p\.yaml:1/], ["another version", "version: 2\nrules: []", /version/], ["a list", "[]", /expected object/], ["nothing", "", /expected object/],
    ["a condition that is no condition", "version: 1\nrules:\n  - { id: a, verdict: deny, reason: x, when: tool.name }", /of type string, expected bool/],
    ["an unknown field", "version: 1\nrules:\n  - { id: a, verdict: deny, reason: x, when: 'tool.nam == \"x\"' }", /did you mean "name"/],
    ["a number against a word", "version: 1\nrules:\n  - { id: a, verdict: deny, reason: x, when: 'tool.name > 5' }", /no such overload/],
    ["the same id in two places", "version: 1\nrules:\n  - { id: a, verdict: deny, reason: x }\n  - { id: a, verdict: ask, reason: x }", /the id is taken by p\.yaml:3/]])("refuses %s", (_name, text, reason) => {
    expect(faultsOf(text).join("\n")).toMatch(reason);
  });

  it("the version follows the text, not the place or the order of the files", () => {
    const a = { file: "a.yaml", text: `version: 1\nrules:\n${rule("a", "allow")}` };
    const b = { file: "b.yaml", text: `version: 1\nrules:\n${rule("b", "ask")}` };
    expect(compilePolicy([a, b]).version).toBe(compilePolicy([b, { ...a, file: "/elsewhere/a.yaml" }]).version);
    expect(compilePolicy([a]).version).not.toBe(compilePolicy([a, b]).version);
  });
});

describe("lint", () => {
  it("names rules without effect, unknown tools, and allows of what cannot be undone", () => {
    const policy = policyOf(rule("all", "ask", 'match: { tools: ["re*"] }') + rule("some", "allow", "match: { tools: [refund] }") + rule("typo", "deny", "match: { tools: [refnd] }")
      + rule("twin", "ask", 'match: { tools: ["re*"] }') + rule("regex", "deny", `when: 'args.s.matches("(a+)+$")'`));
    expect(lintPolicy(policy, [refund]).map((w) => `${String(w.line)} ${w.rule}: ${w.message}`)).toEqual([
      "4 some: never has an effect: all (line 3) says ask for everything it matches, and the strictest wins",
      "4 some: allows refund without a condition, and what it does cannot be repeated or undone (effects: once)",
      '5 typo: matches no known tool: "refnd" (did you mean "refund"?)',
      "6 twin: says the same as all (line 3)",
      "7 regex: its regular expression repeats a repetition, which hostile arguments can make run for minutes; write it without the outer + or *",
    ]);
  });

  it.each([["*", "x", true], ["a*", "ab", true], ["a*c", "abc", true], ["a*a", "a", false], ["*b*", "abc", true], ["*b*b*", "abc", false], ["a.c", "abc", false], ["a", "ab", false]])("glob %s on %s: %s", (glob, name, fits) => {
    expect(globFits(glob, name)).toBe(fits);
  });
});

describe("the shipped policy", () => {
  it("compiles without warnings and says what its comments say", async () => {
    const policy = compilePolicy([{ file: "policies/default.yaml", text: await readFile("policies/default.yaml", "utf8") }]);
    expect(lintPolicy(policy)).toEqual([]);
    const verdict = (name: string, effects: "none" | "idempotent" | "once") => judge(policy, manifestOf({ name, effects }), facts({ toolName: name, argsText: "{}" }));
    expect(verdict("sql_query", "none").verdict).toBe("allow");
    expect(verdict("file_write", "idempotent").verdict).toBe("allow");
    expect(verdict("http_request", "once")).toMatchObject({ verdict: "ask", rule: "effects-once" });
    expect(verdict("http_get", "none")).toMatchObject({ verdict: "ask", rule: "no-rule" });
    expect(verdict("issue_refund", "once")).toMatchObject({ verdict: "ask", risk: "high", rule: "effects-once,money-moves", onExpiry: "reject" });
    expect(verdict("send_mail", "once").verdict).toBe("ask");
  });
});
