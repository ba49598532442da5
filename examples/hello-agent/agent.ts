import { z } from "zod";
import { defineAgent } from "../../src/agent/index.js";

const SignUp = z.object({ id: z.number(), name: z.string().min(1), country: z.string().default("unknown") });

export const agent = defineAgent({
  name: "hello-agent",
  version: "1",
  description: "Greets people who sign up.",
  instructions: "You greet new customers. Look up the greeting of their country with the tool `greeting`, then answer with one friendly sentence.",
  model: "scripted:hello-agent",
  tools: ["greeting"],
  triggers: [
    // One session per customer: all events of one customer share its history and come one at a time.
    { types: ["com.example.customer.signed_up"], session: (event) => `customer-${String(SignUp.parse(event.data).id)}` },
  ],
  // A business rule: what fails here is recorded as rejected, and no model is called.
  check: (event) => (SignUp.parse(event.data).name === "test" ? { ok: false, code: "test_account", message: "test accounts are not greeted" } : { ok: true }),
  input: (event) => {
    const { name, country } = SignUp.parse(event.data);
    return `A customer signed up. Name: ${name}. Country: ${country}.`;
  },
  limits: { maxSteps: 4, budgetUsd: 0.05 },
});
