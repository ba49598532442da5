/**
 * Owns: how the example tools talk to the outside systems of "the recorded day" (orders, mail, files). The address is
 * the tool secret ACME_URL; examples/recorded-day/acme.mjs is a server for it that fails as that day did.
 */
import { ToolFailure, type ToolContext } from "../src/agent/index.js";

/** Posts JSON with the call's idempotency key. 5xx and no answer are transient, 4xx permanent. */
export async function callAcme(context: ToolContext, path: string, body: object): Promise<unknown> {
  const url = new URL(path, context.secret("ACME_URL"));
  let reply: Response;
  try {
    reply = await fetch(url, {
      method: "POST", signal: context.signal, body: JSON.stringify(body),
      headers: { "content-type": "application/json", "idempotency-key": context.idempotencyKey, "x-session-id": context.sessionId },
    });
  } catch (error) {
    throw ToolFailure.transient(`${url.host} does not answer: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  const text = await reply.text();
  if (reply.status >= 500) throw ToolFailure.transient(`${url.pathname} answered ${String(reply.status)}: ${text.slice(0, 200)}`);
  if (!reply.ok) throw ToolFailure.permanent(`${url.pathname} answered ${String(reply.status)}: ${text.slice(0, 200)}`);
  return JSON.parse(text) as unknown;
}
