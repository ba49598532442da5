/**
 * Owns: whether a webhook body is signed by a secret we share, over the raw bytes, in constant time. The secret that
 * verifies decides the tenant. Nothing of a body is read before its signature holds.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { verify } from "@octokit/webhooks-methods";
import { Problem } from "../../contracts/problems.js";
import type { WebhookSecrets } from "../config.js";

/** The configuration whose secret signed a GitHub delivery (`X-Hub-Signature-256`). Throws Problem `bad_signature`. */
export async function verifyGithub(hooks: readonly WebhookSecrets[], bodyText: string, header: string | undefined): Promise<WebhookSecrets> {
  if (header === undefined) throw badSignature("the delivery has no X-Hub-Signature-256", "set a secret on the webhook at GitHub");
  if (!/^sha256=[0-9a-f]{64}$/.test(header) || bodyText === "") throw badSignature("X-Hub-Signature-256 is not sha256= and 64 lower-case hex digits");
  let signer: WebhookSecrets | undefined;
  for (const hook of hooks) {
    for (const secret of hook.secrets) {
      if (await verify(secret, bodyText, header)) signer ??= hook;
    }
  }
  if (signer === undefined) throw badSignature("X-Hub-Signature-256 does not verify with any configured secret");
  return signer;
}

/** The same for Stripe (`Stripe-Signature: t=…,v1=…`). Throws Problem `bad_signature`, `stale_timestamp`. */
export function verifyStripe(hooks: readonly WebhookSecrets[], body: Buffer, header: string | undefined, time: { readonly nowMs: number; readonly toleranceMs: number }): WebhookSecrets {
  if (header === undefined) throw badSignature("the delivery has no Stripe-Signature");
  const { timestamp, candidates } = readStripeHeader(header);
  let signer: WebhookSecrets | undefined;
  for (const hook of hooks) {
    for (const secret of hook.secrets) {
      const expected = createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest();
      for (const candidate of candidates) {
        if (timingSafeEqual(expected, candidate)) signer ??= hook;
      }
    }
  }
  if (signer === undefined) throw badSignature("Stripe-Signature does not verify with any configured secret");
  const ageMs = time.nowMs - Number(timestamp) * 1000;
  if (Math.abs(ageMs) > time.toleranceMs) {
    throw new Problem("stale_timestamp", `the delivery was signed ${Math.abs(Math.round(ageMs / 1000))} s ${ageMs > 0 ? "ago" : "in the future"}; the window is ${Math.round(time.toleranceMs / 1000)} s`, { hint: "check the clocks; Stripe signs every retry anew" });
  }
  return signer;
}

/** Exactly one `t`; `v1` in lower-case hex; other schemes (v0 is for tests only) are ignored. */
function readStripeHeader(header: string): { timestamp: string; candidates: Buffer[] } {
  const parts = header.length > 2_000 ? [] : header.split(",").map((part) => {
    const at = part.indexOf("=");
    return [part.slice(0, at), part.slice(at + 1)] as const;
  });
  const times = parts.filter(([name]) => name === "t").map(([, value]) => value);
  const candidates = parts.filter(([name, value]) => name === "v1" && /^[0-9a-f]{64}$/.test(value)).slice(0, 10).map(([, value]) => Buffer.from(value, "hex"));
  const timestamp = times[0];
  if (timestamp === undefined || times.length !== 1 || !/^[1-9]\d{0,12}$/.test(timestamp)) throw badSignature("Stripe-Signature has not exactly one usable t=");
  if (candidates.length === 0) throw badSignature("Stripe-Signature has no usable v1=");
  return { timestamp, candidates };
}

function badSignature(detail: string, hint = "check that both sides have the same signing secret, and that no proxy changes the body"): Problem {
  return new Problem("bad_signature", detail, { hint });
}
