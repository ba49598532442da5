/** Tools whose effect is counted outside, by idempotency key: one that runs at once, and one that a person is asked about. */
import { z } from "zod";
import { defineTool } from "../../../dist/src/agent/index.js";

const input = z.strictObject({ turn: z.string() });

async function record({ turn }, context) {
  const reply = await fetch(context.secret("BENCH_URL"), { method: "POST", body: `${context.idempotencyKey} ${turn}`, signal: context.signal });
  if (!reply.ok) throw new Error(`the effect was refused: ${reply.status}`);
  await reply.arrayBuffer();
  return { recorded: turn };
}

export const recordEffect = defineTool({
  name: "record_effect", description: "Records the effect of a message.", input, effects: "idempotent", defaultVerdict: "allow", run: record,
});

export const recordDecidedEffect = defineTool({
  name: "record_decided_effect", description: "Records the effect of a message after a person has agreed.", input, effects: "idempotent", defaultVerdict: "ask", run: record,
});
