/** Tells the order system which team handles an order. Idempotent there: the key is passed on. */
import { z } from "zod";
import { defineTool } from "../../../src/agent/index.js";
import { callAcme } from "../../acme.js";

export const routeOrder = defineTool({
  name: "route_order",
  title: "Route an order",
  description: "Assigns an order to a team in the order system.",
  input: z.strictObject({ orderId: z.string(), team: z.enum(["standard", "wholesale", "fraud"]) }),
  effects: "idempotent",
  risk: "low",
  defaultVerdict: "allow",
  maxTries: 3,
  timeoutMs: 10_000,
  run: ({ orderId, team }, context) => callAcme(context, `/orders/${encodeURIComponent(orderId)}/route`, { team }),
});
