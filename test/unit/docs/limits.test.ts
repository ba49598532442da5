/** The numbers of docs/limits.md are those of the code, and what is too large is refused as the page says. */
import { describe, expect, it } from "vitest";
import { defineTool } from "../../../src/agent/index.js";
import { z } from "zod";
import { MAX_COMMAND_BYTES, MAX_EVENT_BYTES, parseEnvelope } from "../../../src/contracts/cloudevent.js";
import { MAX_OUTPUT_BYTES } from "../../../src/contracts/tools.js";
import { DEFAULT_LIMITS } from "../../../src/session/host/agents.js";
import { read, rows, section } from "./pages.js";

/** What stands between code marks; a cell that is nothing else has lost them. */
const marked = (text: string): string[] => (text.includes("`") ? [...text.matchAll(/`([^`]+)`/g)].flatMap(([, word]) => word ?? []) : [text].filter((word) => word !== ""));
const listed = rows(section(read("docs/limits.md"), "Limits"));

describe("docs/limits.md", () => {
  it("has the value of every constant that it names", () => {
    const named = listed.flatMap(([limit, value, where]) => {
      const [, name, file] = /^`?([A-Z_]+)`? in `?(src\/[a-z/-]+\.ts)`?/.exec(where ?? "") ?? [];
      return name === undefined || file === undefined ? [] : [{ limit, value: Number(value), name, file }];
    });
    expect(named.length).toBeGreaterThan(listed.length - 2);
    for (const { value, name, file } of named) {
      const product = new RegExp(`^(?:export )?const ${name} = ([\\w *]+);`, "m").exec(read(file))?.[1];
      expect(product?.replace("MAX_EVENT_BYTES", String(MAX_EVENT_BYTES)).replaceAll("_", "").split("*").reduce((result, factor) => result * Number(factor), 1), `${name} in ${file}`).toBe(value);
    }
    expect(listed.find(([limit]) => limit?.startsWith("events that wait"))?.[1]).toBe(String(DEFAULT_LIMITS.maxMailbox));
  });

  it("names for each limit tests that are there and speak of it, by its constant or by the code of the refusal", () => {
    for (const [limit = "", , where = "", beyond = "", tests = ""] of listed) {
      const words = marked(`${where} ${beyond}`).filter((word) => !word.includes("/")).map((word) => word.split(".").at(-1) ?? word);
      expect(marked(tests), limit).not.toEqual([]);
      for (const file of marked(tests)) {
        const text = read(file);
        expect(words.some((word) => new RegExp(`\\b${word}\\b`).test(text)), `${file} speaks of none of ${words.join(", ")}: ${limit}`).toBe(true);
      }
    }
  });

  it("the largest output of a tool, every character escaped, is a report that is taken", () => {
    const report = (output: string): string => JSON.stringify({ specversion: "1.0", id: "r", source: "worker", type: "t", data: { output } });
    expect(parseEnvelope(report("\u0001".repeat(MAX_OUTPUT_BYTES)), MAX_COMMAND_BYTES).id).toBe("r");
    expect(() => parseEnvelope(report("x".repeat(MAX_EVENT_BYTES)))).toThrow(expect.objectContaining({ code: "payload_too_large" }) as Error);
    const tool = (outputCapBytes: number) => () => defineTool({ name: "t", description: "x", input: z.object({}), effects: "none", outputCapBytes, run: () => Promise.resolve("") });
    expect(tool(MAX_OUTPUT_BYTES)).not.toThrow();
    expect(tool(MAX_OUTPUT_BYTES + 1)).toThrow(/outputCapBytes/);
  });
});
