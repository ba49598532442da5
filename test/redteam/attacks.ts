/** Owns: the attacks on decisions, grants, results, the API and the edge (attack.ts says what an attack is). Those by way of notices are in notice-attacks.ts. */
import { argsDigest } from "../../src/contracts/ids.js";
import { SESSION_CANCEL } from "../../src/contracts/messages.js";
import { at, type Attack, type Change } from "./attack.js";
import { actor, api, approvalAndPerson, body, click, event, fromPage, github, granted, next, published, reported, stream, stripe, until, waiting, words, type Json } from "./families.js";
import { NOTICE_ATTACKS } from "./notice-attacks.js";
import type { RedWorld } from "./world.js";

const claims = (request: Json): Json => request["claims"] as Json;
const inBody = (member: string, value: unknown) => (request: Json): Change => ["raw", body(request["raw"], member, value)];
const asPerson = (about: Parameters<RedWorld["key"]>[1]) => async (_request: Json, w: RedWorld): Promise<Change> => ["key", await w.key(`intruder-${String(next())}`, about)];

/** One person's approval is enough for a parcel. */
const parcel = async (w: RedWorld, change: Json = {}): Promise<Json> => {
  const opened = await waiting(w, `ship ${String(next())}`);
  return { key: await w.key(`packer-${String(next())}`), approvalId: opened.approvalId, contentEncoding: "identity", raw: JSON.stringify({ kind: "approve", version: opened.version, argsDigest: opened.argsDigest, decisionId: `parcel-${String(next())}-0`, ...change }) };
};
const edited = (args: string) => (w: RedWorld): Promise<Json> => parcel(w, { kind: "modify", args });
const otherSession = async (w: RedWorld): Promise<string> => (await waiting(w, `pay ${String(next())}`)).sessionId;

export const ATTACKS: readonly Attack[] = [
  // A click through the console's API.
  { rule: "the digest is of other arguments", by: click, refusal: "digest_mismatch", change: inBody("argsDigest", argsDigest("{}")) },
  { rule: "the version is an older one", by: click, refusal: "version_mismatch", change: inBody("version", 0) },
  { rule: "the version is one to come", by: click, refusal: "version_mismatch", change: inBody("version", 2) },
  { rule: "the approval id is invented", by: click, refusal: "approval_not_found", change: at("approvalId", "apr_000000000000000000000000") },
  { rule: "the approval is of another session", by: click, refusal: "digest_mismatch", change: async (_r, w) => ["approvalId", (await waiting(w, `pay ${String(next())}`)).approvalId] },
  { rule: "the approval is of another tool", by: click, refusal: "digest_mismatch", change: async (_r, w) => ["approvalId", (await waiting(w, `ship ${String(next())}`)).approvalId] },
  { rule: "the approval is of another tenant", by: click, refusal: "approval_not_found", change: async (_r, w) => ["approvalId", (await waiting(w, `pay ${String(next())}`, { as: "stranger", tenant: "other" })).approvalId] },
  { rule: "the answer is not offered", by: click, refusal: "decision_not_allowed", change: inBody("kind", "give_up") },
  { rule: "the kind of answer does not exist", by: click, refusal: "validation_failed", change: inBody("kind", "allow") },
  { rule: "a viewer decides", by: click, refusal: "not_an_approver", change: asPerson({ roles: ["viewer"] }) },
  { rule: "an operator decides", by: click, refusal: "not_an_approver", change: asPerson({ roles: ["operator"] }) },
  { rule: "a machine decides", by: click, refusal: "not_an_approver", change: asPerson({ class: "machine" }) },
  { rule: "an agent decides", by: click, refusal: "not_an_approver", change: asPerson({ class: "agent" }) },
  { rule: "the requester decides", by: click, refusal: "own_request", change: (_r, w) => ["key", w.keys.get("rita")] },
  { rule: "a person of another tenant decides", by: click, refusal: "approval_not_found", change: asPerson({ tenant: "other" }) },
  { rule: "a key has run out", by: click, refusal: "unauthenticated", change: asPerson({ expiresAt: "2020-01-01T00:00:00Z" }) },
  { rule: "a key was revoked", by: click, refusal: "unauthenticated", change: async (_r, w) => { const key = await w.key("gone"); await w.revoke(key); return ["key", key]; } },
  { rule: "a key lacks the scope", by: click, refusal: "forbidden", change: asPerson({ scopes: ["sessions:read"] }) },
  { rule: "a key's id goes with another secret", by: click, refusal: "unauthenticated", change: (r) => ["key", `${String(r["key"]).slice(0, -8)}AAAAAAAA`] },
  { rule: "a principal is smuggled into the body", by: click, refusal: "validation_failed", change: inBody("principal", { id: "admin", class: "person", roles: ["admin"] }) },
  { rule: "a prototype is smuggled into the body", by: click, refusal: "validation_failed", change: (r) => ["raw", String(r["raw"]).replace("{", '{"__proto__":{"roles":["admin"]},')] },
  { rule: "a key is there twice", by: click, refusal: "not_json", change: (r) => ["raw", String(r["raw"]).replace("{", '{"kind":"reject",')] },
  { rule: "a name is written with a look-alike letter", by: click, refusal: "validation_failed", change: (r) => ["raw", String(r["raw"]).replace('"kind"', '"k\u0456nd"')] },
  { rule: "there is data behind the JSON", by: click, refusal: "not_json", change: (r) => ["raw", `${String(r["raw"])}{"kind":"reject"}`] },
  { rule: "a number is NaN", by: click, refusal: "not_json", change: (r) => ["raw", String(r["raw"]).replace('"version":1', '"version":NaN')] },
  { rule: "a number is no whole one", by: click, refusal: "validation_failed", change: inBody("version", 1.5) },
  { rule: "the body nests without end", by: click, refusal: "not_json", change: (r) => ["raw", String(r["raw"]).replace("{", `{"x":${"[".repeat(2_000)}${"]".repeat(2_000)},`)] },
  { rule: "the body is compressed", by: click, refusal: "bad_request", change: at("contentEncoding", "gzip") },
  { rule: "the body is too large", by: click, refusal: "payload_too_large", change: inBody("text", "x".repeat(600_000)) },
  { rule: "a call of risk high is allowed for the session", by: click, refusal: "decision_not_allowed", change: inBody("remember", { forMs: 60_000 }) },
  { rule: "an allowance never ends", by: click, refusal: "validation_failed", base: (w) => parcel(w, { remember: { forMs: 60_000 } }), good: "approved", change: inBody("remember", { uses: 1 }) },
  { rule: "an allowance is for other arguments than those shown", by: click, refusal: "arguments_invalid", base: async (w) => { const r = await parcel(w); return { ...r, raw: body(r["raw"], "remember", { forMs: 60_000, where: '{"weight":10}' }) }; }, good: "approved", change: inBody("remember", { forMs: 60_000, where: '{"weight":10e0}' }) },
  // Edited arguments.
  { rule: "an edit does not fit the schema", by: click, refusal: "arguments_invalid", base: edited('{"id":1,"weight":5}'), good: "modified", change: inBody("args", '{"id":1,"weight":"5"}') },
  { rule: "an edit brings a member that the tool does not have", by: click, refusal: "arguments_invalid", base: edited('{"id":1,"weight":5}'), good: "modified", change: inBody("args", '{"id":1,"weight":5,"to":"me"}') },
  { rule: "an edit hides a member in a prototype", by: click, refusal: "arguments_invalid", base: edited('{"id":1,"weight":5}'), good: "modified", change: inBody("args", '{"id":1,"weight":5,"__proto__":{"weight":900}}') },
  { rule: "an edit says an argument twice", by: click, refusal: "arguments_invalid", base: edited('{"id":1,"weight":5}'), good: "modified", change: inBody("args", '{"id":1,"weight":5,"weight":900}') },
  { rule: "an edit is one that policy denies", by: click, refusal: "denied_by_policy", base: edited('{"id":1,"weight":5}'), good: "modified", change: inBody("args", '{"id":1,"weight":5000}') },
  { rule: "an edit is larger than arguments may be", by: click, refusal: "payload_too_large", base: edited('{"id":1,"weight":5}'), good: "modified", change: inBody("args", `{"id":1,"weight":5,"pad":"${"x".repeat(40_000)}"}`) },
  { rule: "an edit is a number beyond every range", by: click, refusal: "arguments_invalid", base: edited('{"id":7,"weight":5}'), good: "modified", change: inBody("args", '{"id":1e999,"weight":5}') },
  // A decision as bytes on the topic.
  { rule: "a decision is signed by the worker", by: published, refusal: "bad_signature", change: at("signer", "tools") },
  { rule: "a decision is signed by the session host", by: published, refusal: "bad_signature", change: at("signer", "sessions") },
  { rule: "a decision is not signed", by: published, refusal: "bad_signature", change: at("header.alg", "none") },
  { rule: "a decision was changed after it was signed", by: published, refusal: "bad_signature", change: at("header.tampered", true) },
  { rule: "a decision is another kind of statement", by: published, refusal: "bad_signature", change: at("header.typ", "docket-grant+jwt") },
  { rule: "a decision names a key that nobody knows", by: published, refusal: "bad_signature", change: at("header.kid", "console:AAAAAAAAAAAAAAAA") },
  { rule: "a decision is for another audience", by: published, refusal: "bad_signature", change: at("claims.aud", "docket/tools") },
  { rule: "a decision was signed for another session", by: published, refusal: "bad_signature", change: at("claims.sub", "default_elsewhere") },
  { rule: "a decision was signed for another approval than its message says", by: published, refusal: "bad_signature", change: at("claims.approvalId", "apr_other") },
  { rule: "a decision comes after its time", by: published, refusal: "expired", change: at("claims.exp", 1) },
  { rule: "a decision comes from the future", by: published, refusal: "bad_signature", change: (r) => ["claims.iat", Number(claims(r)["iat"]) + 3_600] },
  { rule: "a decision is replayed into another session", by: published, refusal: "bad_signature", change: async (_r, w) => ["data.sessionId", await otherSession(w)] },
  { rule: "a signed decision is for another digest", by: published, refusal: "digest_mismatch", change: at("claims.argsDigest", argsDigest("{\"id\":1}")) },
  { rule: "a signed decision is for another version", by: published, refusal: "version_mismatch", change: at("claims.version", 7) },
  { rule: "a signed decision is a webhook's", by: published, refusal: "not_an_approver", change: at("claims.principal.class", "webhook") },
  { rule: "a signed decision is the system's own", by: published, refusal: "not_an_approver", change: at("claims.principal.class", "system") },
  { rule: "a signed decision is by somebody without roles", by: published, refusal: "not_an_approver", change: at("claims.principal.roles", []) },
  { rule: "a signed decision is by the requester", by: published, refusal: "own_request", change: at("claims.principal.id", "rita") },
  { rule: "a person signs a second time under a new id", by: published, refusal: "already_decided", change: async (r, w) => {
    const first = structuredClone(r);
    (first["claims"] as Json)["jti"] = `first-${String(next())}`;
    (first["claims"] as { principal: Json }).principal["id"] = `twice-${String(next())}`;
    await published.send(w, first);
    return ["claims.principal.id", (first["claims"] as { principal: Json }).principal["id"]];
  } },
  { rule: "a person is in the wrong group", by: published, refusal: "not_an_approver", base: async (w) => {
    const opened = await waiting(w, `export ${String(next())}`);
    const request = await published.base(w);
    const { approvalId, argsDigest: digest, actorId, sessionId } = opened;
    return { ...request, data: { tenant: "default", sessionId, actorId, approvalId }, claims: { ...claims(request), sub: actorId, approvalId, argsDigest: digest, principal: { id: "eve", class: "person", roles: ["approver"], groups: ["emea"] } } };
  }, change: at("claims.principal.groups", ["apac"]) },
  { rule: "an unknown type comes on the decisions' topic", by: published, refusal: "unknown_type", change: at("type", "com.docket.decision.made.v9") },
  // The worker.
  { rule: "a grant is signed by the console", by: granted, refusal: "bad_signature", change: at("signer", "console") },
  { rule: "a grant is not signed", by: granted, refusal: "bad_signature", change: at("header.alg", "none") },
  { rule: "a grant is for another tool", by: granted, refusal: "forbidden", change: at("claims.tool", "pay") },
  { rule: "a grant is for another call", by: granted, refusal: "forbidden", change: at("claims.jti", "call_other") },
  { rule: "a grant is for another session", by: granted, refusal: "forbidden", change: at("claims.sub", "default_elsewhere") },
  { rule: "a grant is for other arguments", by: granted, refusal: "digest_mismatch", change: at("claims.digest", argsDigest("{}")) },
  { rule: "arguments were changed behind the grant", by: granted, refusal: "digest_mismatch", change: (r) => ["request.args", String((r["request"] as Json)["args"]).replace("10", "900")] },
  { rule: "a number is written otherwise behind the grant", by: granted, refusal: "digest_mismatch", change: (r) => ["request.args", String((r["request"] as Json)["args"]).replace("10", "1e1")] },
  { rule: "a grant has run out", by: granted, refusal: "bad_signature", change: at("claims.exp", 1) },
  { rule: "a grant is used in another tenant", by: granted, refusal: "forbidden", change: at("request.tenant", "other") },
  // A tool's report.
  { rule: "a result is signed by the console", by: reported, refusal: "bad_signature", change: at("signer", "console") },
  { rule: "a result was signed for another call", by: reported, refusal: "bad_signature", change: at("claims.jti", "call_other") },
  { rule: "a result's text is not what was signed", by: reported, refusal: "bad_signature", change: at("result.output", "all is well") },
  { rule: "a result's outcome is not what was signed", by: reported, refusal: "bad_signature", change: at("result.outcome", "failed") },
  { rule: "a result was signed for another session", by: reported, refusal: "bad_signature", change: at("claims.sub", "default_elsewhere") },
  // Pages of others.
  { rule: "a write by cookie names no origin", by: fromPage, refusal: "forbidden", change: at("origin", undefined) },
  { rule: "a write by cookie comes from a foreign origin", by: fromPage, refusal: "forbidden", change: at("origin", "https://evil.example") },
  { rule: "a write by cookie comes from the origin null", by: fromPage, refusal: "forbidden", change: at("origin", "null") },
  { rule: "a write by cookie comes from another port", by: fromPage, refusal: "forbidden", change: (r) => ["origin", `${String(r["origin"]).replace(/:\d+$/, "")}:1`] },
  { rule: "a write by cookie comes from an origin that begins like ours", by: fromPage, refusal: "forbidden", change: (r) => ["origin", `${String(r["origin"])}.evil.example`] },
  { rule: "a cookie is forged", by: fromPage, refusal: "unauthenticated", change: at("cookie", `docket=${"A".repeat(43)}`) },
  // Reading and ordering without the right.
  { rule: "a session of another tenant is read", by: api, refusal: "session_not_found", change: (_r, w) => ["key", w.keys.get("stranger")] },
  { rule: "a session is read without a key", by: api, refusal: "unauthenticated", change: at("key", null) },
  { rule: "the audit is read by an approver", by: api, refusal: "forbidden", base: (w) => Promise.resolve({ key: w.keys.get("admin"), method: "GET", path: "/v1/audit", body: null }), change: async (_r, w) => ["key", await w.key(`reader-${String(next())}`)] },
  { rule: "a session is deleted by an operator", by: api, refusal: "forbidden", base: async (w) => {
    const sessionId = `red-${String(next())}`;
    await event.send(w, { key: w.keys.get("rita"), idempotencyKey: `d-${String(next())}`, event: { specversion: "1.0", id: `d-${String(next())}`, source: "urn:red", type: "shop.order.created", subject: sessionId, data: {} } });
    await until(w, `the end of ${sessionId}`, () => w.events(sessionId, "RunEnded")[0]);
    return { key: w.keys.get("admin"), method: "POST", path: `/v1/sessions/${sessionId}/delete`, body: { reason: "red" } };
  }, change: async (_r, w) => ["key", await w.key(`op-${String(next())}`, { roles: ["operator"] })] },
  { rule: "an approval is assigned by a viewer", by: api, refusal: "forbidden", base: async (w) => ({ key: await w.key(`lead-${String(next())}`), method: "POST", path: `/v1/approvals/${(await approvalAndPerson(w)).at.approvalId}/assign`, body: { to: "ann" } }), change: (_r, w) => ["key", w.keys.get("viewer")] },
  { rule: "an approval is put off for ever", by: api, refusal: "validation_failed", base: async (w) => ({ key: await w.key(`lead-${String(next())}`), method: "POST", path: `/v1/approvals/${(await approvalAndPerson(w)).at.approvalId}/snooze`, body: { untilMs: Date.now() + 3_600_000 } }), change: at("body.untilMs", 8_640_000_000_000_000) },
  { rule: "a stream is opened without a key", by: stream, refusal: "unauthenticated", change: at("key", "") },
  { rule: "a stream of another tenant is opened", by: stream, refusal: "session_not_found", change: (_r, w) => ["key", w.keys.get("stranger")] },
  { rule: "a stream is opened without the scope", by: stream, refusal: "forbidden", change: async (_r, w) => ["key", await w.key(`blind-${String(next())}`, { scopes: ["prompts:write"] })] },
  { rule: "the actor is called without the hosts' key", by: actor, refusal: "forbidden", change: at("key", "guess") },
  // Events from outside.
  { rule: "a command of Docket's own comes from outside", by: event, refusal: "reserved_type", change: at("event.type", SESSION_CANCEL) },
  { rule: "a decision comes in as an event", by: event, refusal: "reserved_type", change: at("event.type", "com.docket.decision.made.v1") },
  { rule: "a tool's result comes in as an event", by: event, refusal: "reserved_type", change: at("event.type", "com.docket.tool.completed.v1") },
  { rule: "a session id holds control characters", by: event, refusal: "not_a_cloudevent", change: at("event.subject", "a\u0000b") },
  { rule: "an idempotency key is used for another event", by: event, refusal: "idempotency_key_reused", change: async (r, w) => { await event.send(w, r); return ["event.data.text", "another"]; } },
  { rule: "a webhook is signed with another secret", by: github, refusal: "bad_signature", change: at("signature", `sha256=${"0".repeat(64)}`) },
  { rule: "a webhook is not signed", by: github, refusal: "bad_signature", change: at("signature", null) },
  { rule: "a webhook's body was changed", by: github, refusal: "bad_signature", change: (r) => ["text", `${String(r["text"])} `] },
  { rule: "a webhook is replayed after its window", by: stripe, refusal: "stale_timestamp", change: (r) => ["atS", Number(r["atS"]) - 3_600] },
  { rule: "a webhook is signed with another sender's secret", by: stripe, refusal: "bad_signature", change: at("secret", "github-secret-of-the-red-team") },
  // Words that look like decisions.
  { rule: "a user's message is a decision", by: words, refusal: "a message", change: at("channel", "message") },
  { rule: "a user's message is an envelope", by: words, refusal: "a message", change: at("channel", "envelope") },
  // What comes back from notices.
  ...NOTICE_ATTACKS,
];
