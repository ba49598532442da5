/** The agent of the benchmark: one tool call, one answer, by whatever the model server says. */
import { defineAgent } from "../../dist/src/agent/index.js";

export const agent = defineAgent({
  name: "bench",
  version: "1",
  description: "Records one effect per event and says so.",
  instructions: "Record the effect of the message with the tool record_effect, then say that it is recorded.",
  model: "openai:bench",
  tools: ["record_effect", "record_decided_effect"],
  triggers: [],
});
