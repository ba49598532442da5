/** What `npm run docs` makes is what is in the repository, and knows every variable that the code reads. */
import { describe, expect, it } from "vitest";
import { ConsoleConfig } from "../../../src/console/config.js";
import { APPS } from "../../../src/contracts/channels.js";
import { GatewayConfig } from "../../../src/gateway/config.js";
import { appBaseEnv } from "../../../src/launcher/child-env.js";
import { SETTINGS } from "../../../src/platform/config.js";
import { INSTRUMENTS } from "../../../src/platform/telemetry/metrics.js";
import { read, sources } from "./pages.js";
// @ts-expect-error plain JavaScript, so that it runs without a build of its own
import * as generator from "../../../scripts/generate-docs.mjs";

const { configurationPage, envExample, telemetryPage } = generator as {
  telemetryPage: (page: string, instruments: object) => string;
  configurationPage: (settings: object, seenBy: (variable: string) => string[]) => string;
  envExample: (settings: object) => string;
};
const STALE = "stale: run `npm run docs`";

describe("metrics", () => {
  it("docs/telemetry.md has them all, as they are", () => {
    const page = read("docs/telemetry.md");
    expect(page, STALE).toBe(telemetryPage(page, INSTRUMENTS));
    for (const name of Object.keys(INSTRUMENTS)) expect(page).toContain(`\`${name}\``);
  });
});

describe("configuration", () => {
  it("docs/configuration.md is fresh", () => {
    const seenBy = (variable: string) => APPS.filter((app) => variable in appBaseEnv(app, { [variable]: "x" }));
    expect(read("docs/configuration.md"), STALE).toBe(configurationPage(SETTINGS, seenBy));
  });

  it(".env.example is fresh", () => {
    expect(read(".env.example"), STALE).toBe(envExample(SETTINGS));
  });

  it("is handed on to the room that has a setting of the same name, which would keep its default otherwise", () => {
    const shared = (room: object, main: string) => Object.keys(SETTINGS).filter((key) => key in room).map((key) => ({ key, handed: new RegExp(`\\b${key}: \\w+\\.${key}\\b`).test(read(main)) }));
    expect(shared(GatewayConfig.shape, "src/main/gateway.ts")).toEqual([{ key: "trustProxyHops", handed: true }]);
    expect(shared(ConsoleConfig.shape, "src/main/console.ts")).toEqual([{ key: "trustProxyHops", handed: true }]);
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
