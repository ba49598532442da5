/** The recorded day, part one: every new order is routed to a team. An order with a total of 0 is refused by rule, before any model call. */
import { z } from "zod";
import { defineAgent } from "../../src/agent/index.js";

const Order = z.object({ orderId: z.string(), customer: z.string(), totalCents: z.number().int(), note: z.string().default("") });

export const agent = defineAgent({
  name: "order-triage",
  version: "1",
  description: "Routes each new order to the team that handles it.",
  instructions: "Read the order and route it with route_order: team `fraud` for anything suspicious, `wholesale` above 100000 cents, else `standard`. Then say in one sentence what you did.",
  model: "scripted:order-triage",
  tools: ["route_order"],
  triggers: [{ types: ["com.acme.order.created"], session: (event) => Order.safeParse(event.data).data?.orderId }],
  check: (event) => {
    const order = Order.safeParse(event.data);
    if (!order.success) return { ok: false, code: "order_malformed", message: order.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; ") };
    if (order.data.totalCents <= 0) return { ok: false, code: "order_without_total", message: `order ${order.data.orderId} has a total of ${String(order.data.totalCents)} cents; there is nothing to route` };
    return { ok: true };
  },
  input: (event) => {
    const order = Order.parse(event.data);
    return `New order ${order.orderId} from ${order.customer}, total ${String(order.totalCents)} cents. Note: ${order.note || "none"}`;
  },
});
