/** Saves a draft in the mail system. A draft is not sent, so no approval is asked. */
import { z } from "zod";
import { defineTool } from "../../../src/agent/index.js";
import { callAcme } from "../../acme.js";

export const draftReply = defineTool({
  name: "draft_reply",
  title: "Draft a reply",
  description: "Saves a classified draft reply to a mail. Does not send it.",
  input: z.strictObject({ mailId: z.string(), category: z.enum(["complaint", "question", "spam"]), text: z.string().max(4000) }),
  effects: "idempotent",
  risk: "low",
  defaultVerdict: "allow",
  maxTries: 3,
  timeoutMs: 10_000,
  run: ({ mailId, category, text }, context) => callAcme(context, `/mails/${encodeURIComponent(mailId)}/draft`, { category, text }),
});
