/** What docs/console.md says of a decision's body is the body that the console reads. */
import { describe, expect, it } from "vitest";
import { DecisionRequest } from "../../../src/contracts/api.js";
import { checkRequest } from "../../../src/console/decide.js";
import { read, rows, section } from "./pages.js";

const text = section(read("docs/console.md"), "A decision over the API");

describe("docs/console.md on the body of a decision", () => {
  it("lists every field, and no other", () => { expect(rows(text).map(([field]) => field)).toEqual(Object.keys(DecisionRequest.shape)); });

  it("has examples that the console takes as they are", () => {
    const examples = [...text.matchAll(/^\s*-d '(\{.*\})'/gm), ...text.matchAll(/^(\{"kind".*\})$/gm)].map(([, json]) => JSON.parse((json ?? "").replaceAll("$VERSION", "1").replaceAll("$DIGEST", "sha256:ab")) as unknown);
    expect(examples.length).toBeGreaterThanOrEqual(4);
    for (const example of examples) expect(checkRequest(DecisionRequest.parse(example))).toMatchObject({ version: 1 });
  });
});
