/** What `npm run docs` makes is what is in the repository, and knows every variable that the code reads. */
import { describe, expect, it } from "vitest";
import { APPS } from "../../../src/contracts/channels.js";
import { appBaseEnv } from "../../../src/launcher/child-env.js";
import { SETTINGS } from "../../../src/platform/config.js";
import { read, sources } from "./pages.js";
// @ts-expect-error plain JavaScript, so that it runs without a build of its own
import * as generator from "../../../scripts/generate-docs.mjs";

const { configurationPage, envExample } = generator as {
  configurationPage: (settings: object, seenBy: (variable: string) => string[]) => string;
  envExample: (settings: object) => string;
};
const STALE = "stale: run `npm run docs`";

describe("configuration", () => {
  it("docs/configuration.md is fresh", () => {
    const seenBy = (variable: string) => APPS.filter((app) => variable in appBaseEnv(app, { [variable]: "x" }));
    expect(read("docs/configuration.md"), STALE).toBe(configurationPage(SETTINGS, seenBy));
  });

  it(".env.example is fresh", () => {
    expect(read(".env.example"), STALE).toBe(envExample(SETTINGS));
  });

  it("knows every variable that code and components read", () => {
    const inCode = sources("src", ".ts").flatMap(({ text }) => [...text.matchAll(/env(?:\[["`]|\.)((?:DOCKET|ANTHROPIC|OPENAI)_[A-Z_]+?)(?:_?\$|["`]|\b)/g)]);
    const inFiles = sources("components", ".yaml").flatMap(({ text }) => [...text.matchAll(/(?:envRef: |\$\{)([A-Z]+_[A-Z_]+)/g)]);
    const names = new Set([...inCode, ...inFiles].map((match) => match[1] ?? ""));
    expect(names.size).toBeGreaterThan(10);
    const page = read("docs/configuration.md");
    expect([...names].filter((name) => !page.includes(`\`${name}\``) && !page.includes(`\`${name}_<NAME>\``))).toEqual([]);
  });
});
