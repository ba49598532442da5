import { z } from "zod";
import { defineTool, ToolFailure } from "../../../src/agent/index.js";

const GREETINGS: Readonly<Record<string, string>> = { de: "Guten Tag", fr: "Bonjour", jp: "こんにちは", us: "Hello" };

export const greeting = defineTool({
  name: "greeting",
  description: "Gives the usual greeting of a country.",
  input: z.object({
    country: z.string().length(2).describe("Two-letter country code in lower case."),
    formal: z.boolean().default(true),
  }),
  effects: "none",
  defaultVerdict: "allow",
  run: ({ country, formal }) => {
    const found = GREETINGS[country];
    if (found === undefined) throw ToolFailure.business(`no greeting is known for "${country}"; known: ${Object.keys(GREETINGS).join(", ")}`);
    return { greeting: formal ? found : `${found}!` };
  },
});
