/**
 * Owns: signatures between the apps (DESIGN 5): grants (sessions -> tools), decisions (console -> sessions) and results
 * (tools -> sessions), heads of the audit (console -> whoever checks an export), and what the console itself hands out and gets back
 * (one-time links, buttons of cards), as EdDSA JWS. Who verifies cannot mint.
 *
 * - Ed25519 is deterministic and claims are serialised in the order of their schema: the same claims give the same JWS,
 *   so a session mints a grant again instead of storing it.
 * - `typ` names the kind of statement, so that one can never be read as another.
 * - `iat` and `exp` are seconds, as in every JWT.
 */
import { CompactSign, compactVerify, decodeProtectedHeader } from "jose";
import type { z } from "zod";
import { AuditHeadClaims } from "../contracts/audit.js";
import { DecisionClaims } from "../contracts/decisions.js";
import { ButtonClaims, LinkClaims } from "../contracts/notices.js";
import { Problem } from "../contracts/problems.js";
import { GrantClaims, ResultClaims } from "../contracts/tools.js";
import type { Signer, SigningApp, Trust } from "./keys.js";

/** Clocks of two hosts may differ by this much. */
const CLOCK_SKEW_MS = 30_000;
const ALG = "EdDSA";

interface Timed { iat: number; exp?: number | undefined }
interface Statement<T extends Timed> { readonly typ: string; readonly app: SigningApp; readonly claims: z.ZodType<T>; /** Its reader asks for the time itself. */ readonly timeless?: true }

const GRANT: Statement<GrantClaims> = { typ: "docket-grant+jwt", app: "sessions", claims: GrantClaims };
const DECISION: Statement<DecisionClaims> = { typ: "docket-decision+jwt", app: "console", claims: DecisionClaims, timeless: true };
const RESULT: Statement<ResultClaims> = { typ: "docket-result+jwt", app: "tools", claims: ResultClaims };
const AUDIT_HEAD: Statement<AuditHeadClaims> = { typ: "docket-audit-head+jwt", app: "console", claims: AuditHeadClaims };
const LINK: Statement<LinkClaims> = { typ: "docket-link+jwt", app: "console", claims: LinkClaims, timeless: true };
const BUTTON: Statement<ButtonClaims> = { typ: "docket-button+jwt", app: "console", claims: ButtonClaims };

export function signGrant(signer: Signer, claims: GrantClaims): Promise<string> { return sign(GRANT, signer, claims); }
export function signDecision(signer: Signer, claims: DecisionClaims): Promise<string> { return sign(DECISION, signer, claims); }
export function signResult(signer: Signer, claims: ResultClaims): Promise<string> { return sign(RESULT, signer, claims); }
export function signAuditHead(signer: Signer, claims: AuditHeadClaims): Promise<string> { return sign(AUDIT_HEAD, signer, claims); }
export function signLink(signer: Signer, claims: LinkClaims): Promise<string> { return sign(LINK, signer, claims); }
export function signButton(signer: Signer, claims: ButtonClaims): Promise<string> { return sign(BUTTON, signer, claims); }

/** Each verifier throws Problem `bad_signature` with the reason; what it returns is what was signed. */
export function verifyGrant(trust: Trust, jws: string, nowMs: number): Promise<GrantClaims> { return verify(GRANT, trust, jws, nowMs); }
/** One that has run out verifies all the same: the session records who decided too late (I10). Ask `isLate`. */
export function verifyDecision(trust: Trust, jws: string, nowMs: number): Promise<DecisionClaims> { return verify(DECISION, trust, jws, nowMs); }
export function verifyResult(trust: Trust, jws: string, nowMs: number): Promise<ResultClaims> { return verify(RESULT, trust, jws, nowMs); }
export function verifyAuditHead(trust: Trust, jws: string, nowMs: number): Promise<AuditHeadClaims> { return verify(AUDIT_HEAD, trust, jws, nowMs); }
/** One that has run out verifies all the same: its reader says so in a code of its own. */
export function verifyLink(trust: Trust, jws: string, nowMs: number): Promise<LinkClaims> { return verify(LINK, trust, jws, nowMs); }
export function verifyButton(trust: Trust, jws: string, nowMs: number): Promise<ButtonClaims> { return verify(BUTTON, trust, jws, nowMs); }

/** Whether a decision came after the time that it was signed for. */
export function isLate({ exp }: DecisionClaims, nowMs: number): boolean { return exp * 1000 <= nowMs - CLOCK_SKEW_MS; }

async function sign<T extends Timed>(statement: Statement<T>, signer: Signer, claims: T): Promise<string> {
  if (signer.app !== statement.app) throw new Problem("internal", `${signer.app} cannot sign a ${statement.typ}; only ${statement.app} can`);
  const ordered = statement.claims.parse(claims);
  return new CompactSign(new TextEncoder().encode(JSON.stringify(ordered)))
    .setProtectedHeader({ alg: ALG, kid: signer.kid, typ: statement.typ })
    .sign(signer.key);
}

async function verify<T extends Timed>(statement: Statement<T>, trust: Trust, jws: string, nowMs: number): Promise<T> {
  const refuse = (reason: string, cause?: unknown): Problem =>
    new Problem("bad_signature", `a ${statement.typ} does not verify: ${reason}`, cause === undefined ? {} : { cause });
  let header: { alg?: string | undefined; kid?: string | undefined; typ?: string | undefined };
  try {
    header = decodeProtectedHeader(jws);
  } catch (error) {
    throw refuse("it is not a JWS", error);
  }
  if (header.alg !== ALG) throw refuse(`its algorithm is ${String(header.alg)}, expected ${ALG}`);
  if (header.typ !== statement.typ) throw refuse(`its type is ${String(header.typ)}, expected ${statement.typ}`);
  const trusted = header.kid === undefined ? undefined : trust.keys.get(header.kid);
  if (trusted === undefined) throw refuse(`its key ${String(header.kid)} is not trusted here`);
  if (trusted.app !== statement.app) throw refuse(`its key belongs to ${trusted.app}, expected ${statement.app}`);
  let payload: Uint8Array;
  try {
    payload = (await compactVerify(jws, trusted.key, { algorithms: [ALG] })).payload;
  } catch (error) {
    throw refuse("the signature is not over this text", error);
  }
  return checkClaims(statement, payload, nowMs, refuse);
}

function checkClaims<T extends Timed>(statement: Statement<T>, payload: Uint8Array, nowMs: number, refuse: (reason: string) => Problem): T {
  let raw: unknown;
  try {
    raw = JSON.parse(new TextDecoder().decode(payload));
  } catch {
    throw refuse("its claims are not JSON");
  }
  const parsed = statement.claims.safeParse(raw);
  if (!parsed.success) throw refuse(`its claims do not fit: ${parsed.error.issues.map((i) => `${i.path.map(String).join(".")}: ${i.message}`).join("; ")}`);
  const { iat, exp } = parsed.data;
  if (iat * 1000 > nowMs + CLOCK_SKEW_MS) throw refuse(`it was issued in the future (iat ${String(iat)} s, now ${String(Math.floor(nowMs / 1000))} s)`);
  if (statement.timeless !== true && exp !== undefined && exp * 1000 <= nowMs - CLOCK_SKEW_MS) throw refuse(`it expired (exp ${String(exp)} s, now ${String(Math.floor(nowMs / 1000))} s)`);
  return parsed.data;
}
