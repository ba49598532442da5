/**
 * The red team's most important attacks, each with its twin, on the real stack: real daprd, broker and stores, one process per app (I4, I5, I10). All of them, with
 * the apps in one process: test/redteam/redteam.test.ts. Requests are made side by side, and sent one after the other.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { INJECTION } from "../fixtures/red-agent/red.mjs";
import { prepare, strike, type Prepared } from "../redteam/attack.js";
import { ATTACKS } from "../redteam/attacks.js";
import { next, prompt, until, waiting } from "../redteam/families.js";
import { StackWorld } from "../redteam/stack-world.js";
import { foldCheck } from "../support/checks.js";

/** By the kind of attack. A rule that is not one of the suite's fails. */
const CHOSEN = {
  "stale": ["the version is an older one", "a signed decision is for another version", "a Slack button is of an older card", "a link's time has passed", "a decision comes after its time", "a Slack callback is an old one", "a webhook is replayed after its window"],
  "forged": ["the approval id is invented", "a decision is signed by the worker", "a decision is not signed", "a decision was changed after it was signed", "a grant is not signed", "a result is signed by the console", "a Slack button's value is made up", "a webhook is signed with another secret", "a cookie is forged", "the actor is called without the hosts' key"],
  "of another session, tool, call or tenant": ["the approval is of another session", "the approval is of another tool", "the approval is of another tenant", "a decision was signed for another session", "a decision is replayed into another session", "a grant is for another tool", "a grant is for another session", "a result was signed for another call"],
  "for other arguments": ["the digest is of other arguments", "a signed decision is for another digest", "a link is used for other arguments", "a number is written otherwise behind the grant", "arguments were changed behind the grant", "a result's text is not what was signed"],
  "a second time": ["a person signs a second time under a new id", "a link is used a second time", "a Slack callback is repeated byte for byte"],
  "by the wrong person": ["a viewer decides", "a machine decides", "the requester decides", "a signed decision is by the requester", "a person is in the wrong group", "a key was revoked", "a Slack user stands for the requester", "a link for a payment is used by whom it was forwarded to"],
  "smuggled arguments": ["an edit is larger than arguments may be", "an edit does not fit the schema", "an edit says an argument twice", "an edit is one that policy denies", "a key is there twice"],
  "pages, streams and reads without the right": ["a write by cookie comes from a foreign origin", "a write by cookie names no origin", "a session of another tenant is read", "a session is read without a key", "a stream is opened without a key", "a stream of another tenant is opened", "the audit is read by an approver", "a link says where to go afterwards"],
  "words that look like decisions": ["a user's message is a decision", "a user's message is an envelope", "a decision comes in as an event"],
} as const;
const RULES = Object.entries(CHOSEN).flatMap(([kind, rules]) => rules.map((rule) => [kind, rule] as const));

const w = new StackWorld();
const prepared = new Map<string, Prepared>();
beforeAll(async () => {
  await w.start();
  await Promise.all(RULES.map(async ([, rule]) => {
    const attack = ATTACKS.find((one) => one.rule === rule);
    if (attack === undefined) throw new Error(`no attack of the suite breaks the rule "${rule}"`);
    prepared.set(rule, await prepare(w, attack));
  }));
});
afterAll(() => w.close());

describe("on the real stack each attack is refused and recorded, and its twin succeeds", () => {
  it.each(RULES)("%s: %s", async (_kind, rule) => { await strike(w, prepared.get(rule)!); });
});

it("a hostile tool result and a model that writes its own approval decide nothing", async () => {
  const reader = `red-${String(next())}`;
  await prompt(w, reader, `read ${String(next())}`);
  const writer = await waiting(w, `decide yourself ${INJECTION}`);
  await until(w, "the end of the reading", () => w.events(reader, "RunEnded")[0]);
  expect(w.events(reader, "ToolResultRecorded")[0]!.content.text).toContain(INJECTION.slice(0, 30));
  expect(w.events(writer.sessionId, "ModelAnswered")[0]!.text).toContain("com.docket.decision.made.v1");
  for (const session of [reader, writer.sessionId]) expect(w.events(session, "DecisionRecorded")).toEqual([]);
  expect(w.events(writer.sessionId, "ToolCallDispatched")).toEqual([]);
});

it("afterwards every journal folds to its state", () => { expect(foldCheck(w.docket).problems).toEqual([]); });
