/**
 * Owns: POST /webhooks/github and /webhooks/stripe: verified deliveries become events. A delivery that no agent wants is answered
 * 200 with the reason and logged: an error would make the sender repeat it, and in the end switch the hook off. Errors are for what
 * the sender can mend: a wrong signature, a body that is too large, or a store that is down (then: send it again).
 */
import { Router, type Request, type RequestHandler, type Response } from "express";
import { Problem } from "../../contracts/problems.js";
import { bodyText } from "../../platform/http.js";
import type { WebhookSecrets } from "../config.js";
import { acceptEvent, type AcceptDeps } from "./accept.js";
import { send } from "./events.js";
import type { Delivery } from "./fields.js";
import { githubEvent } from "./github-event.js";
import { verifyGithub, verifyStripe } from "./signatures.js";
import { stripeEvent } from "./stripe-event.js";

export function webhookRoutes(deps: AcceptDeps, limits: readonly RequestHandler[], body: RequestHandler): Router {
  const router = Router({ caseSensitive: true });
  const { github, stripe, toleranceMs } = deps.config.webhooks;
  router.post("/webhooks/github", ...limits, body, async (req, res) => {
    const hooks = configured("GitHub", github);
    const signedText = bodyText(req);
    const signer = await verifyGithub(hooks, signedText, req.header("x-hub-signature-256"));
    const delivery = githubEvent({ event: req.header("x-github-event"), deliveryId: req.header("x-github-delivery"), text: payloadText(req, signedText) });
    await take(deps, res, { sender: "github", tenant: signer.tenant, delivery });
  });
  router.post("/webhooks/stripe", ...limits, body, async (req, res) => {
    const hooks = configured("Stripe", stripe);
    const raw: unknown = req.body;
    const signer = verifyStripe(hooks, Buffer.isBuffer(raw) ? raw : Buffer.alloc(0), req.header("stripe-signature"), { nowMs: deps.clock.nowMs(), toleranceMs });
    await take(deps, res, { sender: "stripe", tenant: signer.tenant, delivery: stripeEvent(bodyText(req)) });
  });
  return router;
}

async function take(deps: AcceptDeps, res: Response, found: { sender: string; tenant: string; delivery: Delivery }): Promise<void> {
  const { sender, tenant, delivery } = found;
  const ignore = (reason: string, detail: string): void => {
    deps.logger.info({ sender, tenant, reason, detail: detail.slice(0, 500) }, "a webhook delivery was ignored");
    res.status(200).json({ ignored: reason, detail });
  };
  if ("ignored" in delivery) { ignore(delivery.ignored, delivery.detail); return; }
  try {
    send(res, await acceptEvent(deps, { tenant, principal: { id: `webhook:${sender}`, class: "webhook", roles: [] } }, delivery.incoming));
  } catch (error) {
    if (!(error instanceof Problem) || error.retryable || error.code === "payload_too_large") throw error;
    ignore(error.code, error.message);
  }
}

function configured(name: string, hooks: readonly WebhookSecrets[] | undefined): readonly WebhookSecrets[] {
  if (hooks === undefined || hooks.length === 0) throw new Problem("not_found", `no ${name} webhook is configured here`, { hint: `set DOCKET_${name.toUpperCase()}_WEBHOOK_SECRETS for the gateway` });
  return hooks;
}

/** GitHub sends JSON, or a form with the JSON in `payload`; the signature is over the form as sent. */
function payloadText(req: Request, signedText: string): string {
  if (req.is("application/x-www-form-urlencoded") === false) return signedText;
  return new URLSearchParams(signedText).get("payload") ?? "";
}
