/**
 * Refunds an order, once. The book of refunds is a file in the session's workspace: one line per refund with the
 * call's idempotency key, so that `reconcile` can answer "did key K happen?" after a crash (I6). Copy this shape for
 * a real payment API: pass the key on, and ask for it in `reconcile`.
 */
import { appendFile, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { defineTool, type ToolContext } from "../../../src/agent/index.js";

const BOOK = "refunds.jsonl";
const Line = z.object({ key: z.string(), orderId: z.string(), amountCents: z.number() });

async function bookOf(context: ToolContext): Promise<z.infer<typeof Line>[]> {
  const text = await readFile(join(context.workspace, BOOK), "utf8").catch((error: unknown) => {
    if ((error as { code?: unknown }).code === "ENOENT") return "";
    throw error;
  });
  return text.split("\n").filter((line) => line !== "").map((line) => Line.parse(JSON.parse(line)));
}

export const issueRefund = defineTool({
  name: "issue_refund",
  title: "Refund an order",
  description: "Pays money back for an order. Cannot be undone.",
  input: z.strictObject({
    orderId: z.string().describe("Order number, digits only"),
    amountCents: z.number().int().min(1).max(100_000).describe("Amount in cents"),
    reason: z.string().max(500).describe("Why, for the customer's file"),
  }),
  effects: "once",
  risk: "high",
  reconcile: async (_args, context) => {
    const done = (await bookOf(context)).find((line) => line.key === context.idempotencyKey);
    return done === undefined ? { happened: false } : { happened: true, output: { refunded: true, orderId: done.orderId, amountCents: done.amountCents } };
  },
  run: async ({ orderId, amountCents, reason }, context) => {
    await mkdir(context.workspace, { recursive: true });
    const line = { key: context.idempotencyKey, orderId, amountCents, reason, atMs: Date.now() };
    await appendFile(join(context.workspace, BOOK), `${JSON.stringify(line)}\n`);
    return { refunded: true, orderId, amountCents };
  },
});
