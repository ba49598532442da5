/** Moves a document to a folder of the archive, with its summary. */
import { z } from "zod";
import { defineTool } from "../../../src/agent/index.js";
import { callAcme } from "../../acme.js";

export const routeFile = defineTool({
  name: "route_file",
  title: "File a document",
  description: "Puts a document in a folder of the archive together with a one-sentence summary.",
  input: z.strictObject({ fileId: z.string(), folder: z.enum(["contracts", "invoices", "other"]), summary: z.string().max(1000) }),
  effects: "idempotent",
  risk: "low",
  defaultVerdict: "allow",
  maxTries: 3,
  timeoutMs: 10_000,
  run: ({ fileId, folder, summary }, context) => callAcme(context, `/files/${encodeURIComponent(fileId)}/route`, { folder, summary }),
});
