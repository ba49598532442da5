import { defineAgent } from "../../src/agent/index.js";

export const agent = defineAgent({
  name: "ledger-tool",
  version: "1",
  description: "Posts entries to a ledger in PostgreSQL, each once.",
  instructions: "You keep a ledger. Post what you are asked to post with the tool `post_entry`, then say the number of the entry and the new balance.",
  model: "scripted:ledger-tool",
  tools: ["post_entry"],
  triggers: [],
  limits: { maxSteps: 4, budgetUsd: 0.05 },
});
