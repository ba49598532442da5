import { z } from "zod";
import { bigInteger, defineTool } from "../../../src/agent/index.js";
import { happened, once } from "./_once.js";

export const postEntry = defineTool({
  name: "post_entry",
  title: "Post a ledger entry",
  description: "Posts one entry to an account of the ledger and gives its number and the new balance. Negative amounts are debits.",
  input: z.strictObject({
    account: z.string().min(1).max(64),
    amountCents: bigInteger().describe("Cents; negative for a debit."),
    memo: z.string().max(200).default(""),
  }),
  effects: "once",
  risk: "high",
  run: ({ account, amountCents, memo }, context) => once(context.secret("LEDGER_URL"), context, async (tx) => {
    const entry = await tx.query<{ entry_id: string }>("insert into ledger_entries (account, amount_cents, memo) values ($1, $2, $3) returning entry_id", [account, String(amountCents), memo]);
    const balance = await tx.query<{ cents: string }>("select sum(amount_cents) as cents from ledger_entries where account = $1", [account]);
    return { entryId: entry.rows[0]?.entry_id, balanceCents: balance.rows[0]?.cents };
  }),
  reconcile: (_args, context) => happened(context.secret("LEDGER_URL"), context),
});
