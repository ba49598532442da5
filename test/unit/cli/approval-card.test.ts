/** `approval show` tells the whole history: who, by which way, what they said, and what they made of the arguments. */
import { expect, it } from "vitest";
import { describe as cardOf } from "../../../src/cli/approvals.js";
import type { ApprovalEvent } from "../../../src/contracts/api.js";
import { pendingOf } from "../../support/console-fakes.js";

const lineOf = (event: Omit<ApprovalEvent, "atMs">) => cardOf({ pending: pendingOf(), state: "decided", history: [{ atMs: Date.now(), ...event }] }).trim().split("\n").at(-1)?.replace(/^history +\S+ ago: /, "");

it.each<[string, Omit<ApprovalEvent, "atMs">]>([
  ["opened money-moves", { what: "opened", detail: "money-moves" }],
  ["decided reject by ann (link): the order is too old", { what: "decided", detail: "reject", by: "ann", via: "link", text: "the order is too old" }],
  ['decided modify by ann (web) with {"amount":12345678901234567890}: half of it', { what: "decided", detail: "modify", by: "ann", via: "web", args: '{"amount":12345678901234567890}', text: "half of it" }],
  ["refused not_an_approver by zoe: zoe has the roles viewer", { what: "refused", detail: "not_an_approver", by: "zoe", text: "zoe has the roles viewer" }],
  ["decided reject by ann: first\\nsecond", { what: "decided", detail: "reject", by: "ann", text: "first\nsecond" }],
  ["assigned by ann", { what: "assigned", by: "ann" }],
])("%s", (line, event) => {
  expect(lineOf(event)).toBe(line);
});
