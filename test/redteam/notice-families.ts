/** Owns: the ways in that notices open: a click in Slack on the card as it came there, and a decision by a one-time link. Each has a request that succeeds, as in families.ts. */
import { SLACK_SECRET, slackCall, slackPayload, TEAM, buttonOf } from "../support/notices.js";
import { approvalAndPerson, get, next, nowS, waiting, type Family, type Json, type Seen, type Waiting } from "./families.js";
import type { RedWorld, Reply } from "./world.js";

/** Sends, and looks whether a row with that outcome came into the audit. */
async function onRecord(w: RedWorld, send: () => Promise<Reply>): Promise<Seen & { reply: Reply }> {
  const rows = async (): Promise<Json[]> => (await Promise.all(["admin", "other-admin"].map(async (reader) => (await w.http("console", get(w, "/v1/audit?limit=200", reader))).body["items"] as Json[]))).flat();
  const before = Math.max(0, ...(await rows()).map((row) => Number(row["seq"])));
  const reply = await send();
  const { code, verdict } = reply.body;
  const outcome = typeof code === "string" ? code : typeof verdict === "string" ? verdict : String(reply.status);
  return { reply, outcome, recorded: (await rows()).some((row) => Number(row["seq"]) > before && row["outcome"] === outcome) };
}

let slackUsers = 0;
/** A click in Slack, on the card as it came there. `bytes`: a recorded call, sent as it was. */
export const slackClick: Family = {
  good: "signed",
  async base(w) {
    const { at: { approvalId } } = await approvalAndPerson(w);
    const card = await w.outside.until(`the card of ${approvalId}`, ({ path, text }) => path.startsWith("/slack/services") && text.includes(approvalId) && text.includes('"approve"'));
    slackUsers += 1;
    return { user: `U0RED${String(slackUsers)}`, action: "approve", value: buttonOf(card, "approve"), team: TEAM, responseUrl: `${w.outside.url}/slack/actions/x`, actionTs: `${String(next())}.1`, atS: nowS(), secret: SLACK_SECRET, tail: "", bytes: null };
  },
  async send(w, request) {
    const { outcome, recorded } = await onRecord(w, () => w.http("console", slackRequest(request)));
    return { outcome, recorded };
  },
};
export function slackRequest({ bytes, user, action, value, team, responseUrl, actionTs, atS, secret, tail }: Json): Parameters<RedWorld["http"]>[1] {
  if (typeof bytes === "string") return JSON.parse(bytes) as Parameters<RedWorld["http"]>[1];
  const call = slackCall(slackPayload({ user: String(user), action: String(action), value: String(value), team: String(team), responseUrl: String(responseUrl), actionTs: String(actionTs) }), { atS: Number(atS), secret: String(secret) });
  return { method: "POST", path: "/hooks/slack", headers: call.headers, text: `${call.text}${String(tail)}` };
}

async function linkFor(w: RedWorld, opened: Waiting, principal: string, key: string | null): Promise<Json> {
  const made = await w.http("console", { method: "POST", path: `/v1/approvals/${opened.approvalId}/links`, headers: { authorization: `Bearer ${w.keys.get("admin") ?? ""}`, "content-type": "application/json" }, text: JSON.stringify({ principal }) });
  return { method: "POST", key, bytes: null, token: new URL(String(made.body["url"])).hash.slice(1), approvalId: opened.approvalId, version: opened.version, argsDigest: opened.argsDigest, kind: "approve", extra: {} };
}
/** A decision by a one-time link. */
export const byLink: Family = {
  good: "approved",
  base: async (w) => linkFor(w, await waiting(w, `ship ${String(next())}`), "lena", null),
  async send(w, request) {
    const { recorded, outcome, reply } = await onRecord(w, () => w.http("console", linkRequest(request)));
    // A GET changes nothing, and leaves no row.
    return { outcome, recorded: recorded || (request["method"] === "GET" && reply.status === 404) };
  },
};
export function linkRequest({ method, key, bytes, extra, ...body }: Json): Parameters<RedWorld["http"]>[1] {
  if (typeof bytes === "string") return JSON.parse(bytes) as Parameters<RedWorld["http"]>[1];
  const text = JSON.stringify({ ...body, ...(extra as Json) });
  return { method: String(method), path: method === "GET" ? `/v1/links/decisions?${new URLSearchParams(body as Record<string, string>).toString()}` : "/v1/links/decisions", headers: { "content-type": "application/json", ...(typeof key === "string" ? { authorization: `Bearer ${key}` } : {}) }, ...(method === "GET" ? {} : { text }) };
}
/** For a payment: then the person must be signed in as well. */
export const signedInLink = async (w: RedWorld): Promise<Json> => {
  const { at: opened } = await approvalAndPerson(w);
  const person = `slack-${String(300 - next() % 60)}`;
  return linkFor(w, opened, person, await w.key(person));
};
