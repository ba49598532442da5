/** Looks an order up. Reads only, so policy lets it run without asking. */
import { z } from "zod";
import { defineTool } from "../../../src/agent/index.js";

/** A day's orders of the example shop. A real agent would ask the shop's own system. */
const ORDERS: Readonly<Record<string, { item: string; totalCents: number; state: string }>> = {
  "1001": { item: "espresso machine", totalCents: 24900, state: "delivered" },
  "1002": { item: "grinder", totalCents: 8900, state: "lost in transit" },
  "1003": { item: "filter papers", totalCents: 450, state: "packed" },
};

export const orderStatus = defineTool({
  name: "order_status",
  title: "Look up an order",
  description: "Returns item, total in cents and state of an order, by its number.",
  input: z.strictObject({ orderId: z.string().describe("Order number, digits only") }),
  effects: "none",
  defaultVerdict: "allow",
  run: ({ orderId }) => {
    const order = ORDERS[orderId];
    return Promise.resolve(order === undefined ? { found: false, orderId } : { found: true, orderId, ...order });
  },
});
