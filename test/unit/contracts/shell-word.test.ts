/** What is printed to be copied into a shell is one command about one session, whatever a sender called it. */
import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { sessionCommand } from "../../../src/contracts/shell-word.js";

/** The words that a shell makes of a line. */
const wordsOf = (line: string): string[] => execFileSync("sh", ["-c", `docket() { printf '%s\\0' "$@"; }; ${line}`], { encoding: "utf8" }).split("\0").slice(0, -1);

it("leaves an ordinary id as it is", () => {
  expect(sessionCommand("tail", "acme/shop:12", "--run", "run_1")).toBe("docket session tail acme/shop:12 --run run_1");
});

it.each(["a b", "x; touch /tmp/pwned", "$(id)", "`id`", "it's", "a\"b", "a\\b", "~root", "#1", "*", "{a,b}", "!!", "ünïcode"])("%s is one word to a shell", (id) => {
  expect(wordsOf(sessionCommand("tail", id, "--until-end"))).toEqual(["session", "tail", id, "--until-end"]);
});

it("an id that looks like an option is none", () => {
  expect(wordsOf(sessionCommand("tail", "--run", "--until-end"))).toEqual(["session", "tail", "--until-end", "--", "--run"]);
});
