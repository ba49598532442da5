/** The agent that takes prompts which name none: a support desk that can look up orders and refund them. Runs without a key on `scripted:assistant`. */
import { defineAgent } from "../../src/agent/index.js";

export const agent = defineAgent({
  name: "assistant",
  version: "1",
  description: "Answers questions about orders and refunds them, with a person's approval.",
  instructions: [
    "You help the support desk of a shop.",
    "Look an order up with order_status before you say anything about it.",
    "Refund with issue_refund only when the user asks for it, with the amount the user named, in cents.",
    "When a person rejects or changes a refund, say so and do not try again.",
  ].join("\n"),
  tools: ["order_status", "issue_refund", "file_list", "file_read", "file_write"],
  triggers: [],
});
