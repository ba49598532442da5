/** Tests that pages name as proofs are there, under the very words: `file` "words of the test". */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { pages, read, ROOT, rows, section } from "./pages.js";

/** `test/x.test.ts` "words", "more words" */
const PROOF = /`(test\/[^`]+\.ts)`((?:,? "[^"]+")+)/g;

it("every test that a page quotes is in the file that it names", () => {
  let quotes = 0;
  for (const { path, text } of pages()) {
    for (const [, file = "", words = ""] of text.matchAll(PROOF)) {
      expect(existsSync(join(ROOT, file)), `${path} names ${file}`).toBe(true);
      for (const [, quote = ""] of words.matchAll(/"([^"]+)"/g)) {
        quotes += 1;
        expect(read(file), `${path}: ${file} has no "${quote}"`).toContain(quote);
      }
    }
  }
  expect(quotes).toBeGreaterThan(15);
});

it("everything that hurts people elsewhere has a test here", () => {
  const hurts = rows(section(read("docs/policies.md"), "What hurts people elsewhere, and the test here"));
  expect(hurts).toHaveLength(10);
  for (const [what, , tests = ""] of hurts) expect([...tests.matchAll(PROOF)].length, what).toBeGreaterThan(0);
});
