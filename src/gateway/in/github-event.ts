/** Owns: what event a verified GitHub delivery is. Identity of the session comes from the verified body only. Pure. */
import { stringifyLossless } from "../../contracts/json.js";
import { Problem } from "../../contracts/problems.js";
import { objectAt, parseBodyObject, subjectAt, textAt, type Delivery } from "./fields.js";

const FALLBACK_SOURCE = "https://github.com";
/** These share one number space per repository; alerts, for one, have another. */
const NUMBERED = ["issue", "pull_request", "discussion"] as const;

/** `com.github.<event>.<action>`, source the repository's URL, subject `owner/repo` or `owner/repo#number`. Throws Problem. */
export function githubEvent(delivery: { event: string | undefined; deliveryId: string | undefined; text: string }): Delivery {
  const { event, deliveryId, text } = delivery;
  if (event === undefined || !/^[a-z0-9_]{1,64}$/.test(event)) throw new Problem("bad_request", "X-GitHub-Event is missing or is no event name");
  if (deliveryId === undefined || !/^[\x21-\x7e]{1,100}$/.test(deliveryId)) throw new Problem("bad_request", "X-GitHub-Delivery is missing or is no delivery id");
  const body = parseBodyObject(text);
  if (event === "ping") return { ignored: "ping", detail: "the hook is set up: signature and secret agree" };
  const action = textAt(body, "action");
  const suffix = action !== undefined && /^[a-z0-9_]{1,64}$/.test(action) ? `.${action}` : "";
  const subject = subjectOf(body);
  return { incoming: { source: sourceOf(body), id: deliveryId, type: `com.github.${event}${suffix}`, data: text, ...(subject === undefined ? {} : { subject }) } };
}

function sourceOf(body: Record<string, unknown>): string {
  const login = textAt(objectAt(body, "organization"), "login") ?? textAt(objectAt(objectAt(body, "installation"), "account"), "login");
  const candidates = [textAt(objectAt(body, "repository"), "html_url"), login === undefined ? undefined : `${FALLBACK_SOURCE}/${encodeURIComponent(login)}`];
  return candidates.find((candidate) => candidate !== undefined && candidate.length <= 1_000 && /^https?:\/\/[\x21-\x7e]+$/.test(candidate)) ?? FALLBACK_SOURCE;
}

/** Default for triggers without a `session` function. */
function subjectOf(body: Record<string, unknown>): string | undefined {
  const repository = subjectAt(objectAt(body, "repository"), "full_name");
  if (repository === undefined || repository.length > 150) return undefined;
  const number = NUMBERED.map((name) => objectAt(body, name)?.["number"]).find((value) => value !== undefined);
  const digits = number === undefined ? "" : stringifyLossless(number);
  return /^\d{1,20}$/.test(digits) ? `${repository}#${digits}` : repository;
}
