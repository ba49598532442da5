/**
 * Owns: the one route that Slack calls. A click becomes a decision of the person behind the Slack user, the same way as any other: same rights, same role,
 * same approval, version and digest, same judge. What it came to is said in Slack: to the person alone, or on the card itself once it is closed.
 *
 * - Slack waits three seconds. What is not known by then is said to be not known; the decision has its id, and is made once.
 */
import type { Express, Request } from "express";
import { createHash } from "node:crypto";
import type { ButtonClaims } from "../../contracts/notices.js";
import { PROBLEMS, Problem, type ProblemCode } from "../../contracts/problems.js";
import { bodyText } from "../../platform/http.js";
import { noticeIdOf, rowFor } from "../notices/planner.js";
import { slackPerson } from "../notices/people.js";
import { post } from "../notices/post.js";
import type { NoticeSettings } from "../notices/settings.js";
import { escapeMrkdwn } from "../notices/slack.js";
import { readClick, verifySlack, type SlackClick } from "../notices/slack-callback.js";
import { visible } from "../notices/text.js";
import { addAudit } from "../read-model/audit.js";
import { findApproval } from "../read-model/approvals.js";
import { addNotice, noticesOf, takeCallback } from "../read-model/notices.js";
import { decideAs, isRefusal } from "./approvals.js";
import { noteCaller } from "./caller.js";
import { audited, changesNothing, type ApiContext } from "./context.js";
import { settingsOf } from "./notices.js";

/** Slack takes changes of a message for half an hour after a click. */
const RESPONSE_URL_MS = 29 * 60_000;

interface Outcome { readonly verdict: string; readonly words: string; /** The copy that was clicked on is out of date now. */ readonly closed: boolean }

export function slackRoutes(app: Express, context: ApiContext): void {
  const { db, deps, config } = context;

  app.post("/hooks/slack", async (req, res) => {
    const { slack, ...settings } = settingsOf(config.notices);
    if (slack === undefined) throw new Problem("not_found", "Slack is not set up here", { hint: "docs/notices.md" });
    const nowMs = deps.clock.nowMs();
    const body: unknown = req.body;
    const { slackWindowMs: windowMs, timeoutMs } = config.noticeTiming;
    const callHash = verifySlack(Buffer.isBuffer(body) ? body : Buffer.alloc(0), { signature: req.header("x-slack-signature"), timestamp: req.header("x-slack-request-timestamp") }, { secrets: slack.secrets, nowMs, windowMs });
    // A timestamp is believed for the window on both sides of now.
    if (!(await takeCallback(db, callHash, nowMs, nowMs + 2 * windowMs))) throw new Problem("callback_replayed", "this very callback came in before", { hint: "the first one has had its effect" });
    const click = readClick(bodyText(req), settings, slack.team);
    if (click.action === "open") { changesNothing(req); res.json({ verdict: "opened" }); return; }
    const outcome = await clicked(context, req, { settings: { slack, ...settings }, click });
    // Slack reads the status only, and shows a triangle for anything but 200; the words go where it shows words.
    res.json({ verdict: outcome.verdict });
    const answer = await post({ method: "POST", url: click.responseUrl, headers: { "content-type": "application/json" }, body: JSON.stringify({ response_type: "ephemeral", replace_original: false, text: escapeMrkdwn(outcome.words) }) }, timeoutMs);
    if (answer.kind !== "sent") deps.logger.warn({ note: answer.note, verdict: outcome.verdict }, "what came of a click could not be said in Slack");
  });
}

async function clicked(context: ApiContext, req: Request, { settings, click }: { readonly settings: NoticeSettings; readonly click: SlackClick }): Promise<Outcome> {
  const { db, deps, config } = context;
  const claims = await deps.noticeSigner.verifyButton(click.value, deps.clock.nowMs());
  if (click.action !== claims.kind) throw new Problem("validation_failed", `the button ${click.action.slice(0, 50)} carries a decision to ${claims.kind}`);
  const caller = slackPerson(settings, deps.authenticator, click.userId);
  if (caller === undefined) {
    // Nobody here stands behind the user: there is no caller to write down, only the user's own id.
    await addAudit(db, { atMs: deps.clock.nowMs(), tenant: claims.tenant, principalId: "", keyId: `slack:${click.userId}`, action: `approval.${claims.kind}`, target: claims.approvalId, outcome: "not_an_approver", reason: "", detail: { via: "slack", team: click.team, noticeId: claims.jti }, ip: req.ip ?? "" });
    changesNothing(req);
    return { verdict: "not_an_approver", words: "Nothing was decided: nobody here is known by your Slack user. An administrator adds you to the notices file.", closed: false };
  }
  noteCaller(req, caller);
  const pending = (await findApproval(db, caller.tenant, claims.approvalId))?.pending;
  const request = { kind: claims.kind, version: claims.version, argsDigest: claims.argsDigest, ...(claims.kind === "reject" ? { text: click.reason === "" ? "rejected in Slack, without a reason" : click.reason } : {}) };
  const detail = { slackUser: click.userId, team: click.team, noticeId: claims.jti };
  let verdict: string;
  try {
    if (claims.tenant !== caller.tenant || pending === undefined || pending.actorId !== claims.sub || pending.sessionId !== claims.sessionId) {
      await audited(context, req, { caller, action: `approval.${claims.kind}`, target: claims.approvalId, reason: request.text ?? "", detail: { ...request, ...detail, via: "slack" } }, () => Promise.reject(new Problem("approval_not_found", `there is no approval ${claims.approvalId} of that session in tenant ${caller.tenant}`)));
    }
    const quick = { ...context, config: { ...config, verdictWaitMs: config.noticeTiming.slackAnswerMs } };
    verdict = (await decideAs(quick, req, { caller, approvalId: claims.approvalId, request, clickId: click.clickId, via: "slack", detail })).verdict;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    verdict = error.code;
  }
  const closed = CLOSED.has(verdict);
  if (closed) await lockCopy(context, settings, claims, click);
  return { verdict, words: wordsFor(verdict, claims), closed };
}

/** Verdicts after which the card that was clicked on is no longer a question. */
const CLOSED: ReadonlySet<string> = new Set(["approved", "rejected", "already_decided", "approval_expired", "approval_withdrawn"]);

/** The card that was clicked on is replaced by what became of it; a row, so that it happens though the console dies now. */
async function lockCopy({ db, deps }: ApiContext, { channels }: NoticeSettings, claims: ButtonClaims, click: SlackClick): Promise<void> {
  const item = await findApproval(db, claims.tenant, claims.approvalId);
  const card = (await noticesOf(db, claims.approvalId)).find((row) => row.notice_id === claims.jti);
  if (item === undefined || card === undefined || !channels.some(({ name }) => name === card.channel)) return;
  const nowMs = deps.clock.nowMs();
  const copy = createHash("sha256").update(click.responseUrl).digest("hex");
  await addNotice(db, rowFor(item.pending, { id: noticeIdOf(claims.approvalId, "locked", card.channel, copy), event: "locked", pos: 0, channel: card.channel, version: claims.version, nowMs, target: JSON.stringify({ responseUrl: click.responseUrl, untilMs: nowMs + RESPONSE_URL_MS }) }));
}

function wordsFor(verdict: string, { kind, approvalId }: ButtonClaims): string {
  if (verdict === "not_known_yet") return `Your decision to ${kind} was taken in; what the session makes of it is not known yet. Look at ${approvalId} in the console.`;
  if (verdict === "signed") return "Your signature counts. More people are needed.";
  if (verdict === "version_mismatch" || verdict === "digest_mismatch") return "This card is out of date: what is asked has changed since. Nothing was decided. Open it in the console.";
  if (isRefusal(verdict)) return `Nothing was decided: ${PROBLEMS[verdict satisfies ProblemCode].title.toLowerCase()}.`;
  return `${visible(verdict.slice(0, 40))}: ${approvalId}`;
}
