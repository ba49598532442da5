/**
 * Owns: what comes back from Slack. It is believed by its signature over the raw bytes and by its timestamp, and by nothing else; then by the signature
 * of the button, which Slack only carries: whoever can post into the channel cannot make one. Nothing of a body is read before its signature holds.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod";
import { sha256Hex } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import type { NoticeSettings } from "./settings.js";

const Payload = z.object({
  type: z.literal("block_actions"), user: z.object({ id: z.string().max(50), team_id: z.string().max(50).optional() }), team: z.object({ id: z.string().max(50) }).nullish(),
  response_url: z.url().max(2_000), actions: z.array(z.object({ action_id: z.string().max(255), value: z.string().max(4_000).optional(), action_ts: z.string().max(50) })).length(1),
  state: z.object({ values: z.object({ reason: z.object({ reason: z.object({ value: z.string().max(3_000).nullish() }) }).optional() }) }).optional(),
});

/** A click, before anybody looked at what it is for. `action` `open`: a link was followed, nothing more. */
export interface SlackClick { readonly userId: string; readonly team: string; readonly action: string; readonly value: string; readonly clickId: string; readonly reason: string; readonly responseUrl: string }

export interface SlackHeaders { readonly signature: string | undefined; readonly timestamp: string | undefined }
interface Secrets { readonly secrets: readonly string[]; readonly nowMs: number; readonly windowMs: number }

/** The hash by which a call is recognised. Throws Problem `bad_signature`, `stale_timestamp`. */
export function verifySlack(body: Buffer, { signature, timestamp }: SlackHeaders, { secrets, nowMs, windowMs }: Secrets): string {
  if (signature === undefined || !/^v0=[0-9a-f]{64}$/.test(signature)) throw bad("X-Slack-Signature is not v0= and 64 hex digits");
  if (timestamp === undefined || !/^[1-9]\d{0,12}$/.test(timestamp)) throw bad("X-Slack-Request-Timestamp is no time in seconds");
  const given = Buffer.from(signature.slice(3), "hex");
  let fits = false;
  for (const secret of secrets) fits = timingSafeEqual(createHmac("sha256", secret).update(`v0:${timestamp}:`).update(body).digest(), given) || fits;
  if (!fits) throw bad("X-Slack-Signature does not verify with the signing secret here");
  const ageMs = nowMs - Number(timestamp) * 1000;
  if (Math.abs(ageMs) > windowMs) throw new Problem("stale_timestamp", `the callback was signed ${String(Math.abs(Math.round(ageMs / 1000)))} s ${ageMs > 0 ? "ago" : "in the future"}; the window is ${String(Math.round(windowMs / 1000))} s`, { hint: "check the clock of this machine" });
  return sha256Hex(`${timestamp}:${signature}`);
}

/** Throws Problem `validation_failed`, `forbidden`. */
export function readClick(text: string, settings: Pick<NoticeSettings, "slackOrigins">, team: string): SlackClick {
  const parsed = Payload.safeParse(jsonIn(new URLSearchParams(text).get("payload") ?? ""));
  if (!parsed.success) throw new Problem("validation_failed", `the callback is none of a card's buttons: ${parsed.error.issues.slice(0, 3).map((issue) => `${issue.path.map(String).join(".")}: ${issue.message}`).join("; ")}`);
  const { user, response_url: responseUrl, actions: [action], state, team: from } = parsed.data;
  if (action === undefined) throw new Problem("validation_failed", "the callback has no action");
  // In a channel that two workspaces share, the user's own one counts.
  const workspace = user.team_id ?? from?.id ?? "";
  if (workspace !== team) throw new Problem("forbidden", `the callback is of Slack workspace ${workspace.slice(0, 40)}, expected ${team}`);
  if (!settings.slackOrigins.includes(new URL(responseUrl).origin)) throw new Problem("validation_failed", `the callback asks for an answer at another place than ${settings.slackOrigins.join(", ")}`, { errors: [{ path: "response_url", message: "expected an address of Slack" }] });
  return {
    userId: user.id, team: workspace, action: action.action_id, value: action.value ?? "", responseUrl, reason: state?.values.reason?.reason.value?.trim() ?? "",
    clickId: `slack:${user.id}:${action.action_ts}:${sha256Hex(action.value ?? "").slice(0, 16)}`,
  };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function bad(detail: string): Problem { return new Problem("bad_signature", detail, { hint: "check that the signing secret is the Slack app's own, and that no proxy changes the body" }); }
