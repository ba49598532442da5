/**
 * Owns: signatures between the apps (DESIGN 5): grants (sessions -> tools), decisions (console -> sessions) and results
 * (tools -> sessions), as EdDSA JWS. Who verifies cannot mint.
 *
 * - Ed25519 is deterministic and claims are serialised in the order of their schema: the same claims give the same JWS,
 *   so a session mints a grant again instead of storing it.
 * - `typ` names the kind of statement, so that one can never be read as another.
 * - `iat` and `exp` are seconds, as in every JWT.
 */
import { CompactSign, compactVerify, decodeProtectedHeader } from "jose";
import type { z } from "zod";
import { DecisionClaims } from "../contracts/decisions.js";
import { Problem } from "../contracts/problems.js";
import { GrantClaims, ResultClaims } from "../contracts/tools.js";
import type { Signer, SigningApp, Trust } from "./keys.js";

/** Clocks of two hosts may differ by this much. */
const CLOCK_SKEW_MS = 30_000;
const ALG = "EdDSA";

interface Timed { iat: number; exp?: number | undefined }
interface Statement<T extends Timed> { readonly typ: string; readonly app: SigningApp; readonly claims: z.ZodType<T> }

const GRANT: Statement<GrantClaims> = { typ: "docket-grant+jwt", app: "sessions", claims: GrantClaims };
const DECISION: Statement<DecisionClaims> = { typ: "docket-decision+jwt", app: "console", claims: DecisionClaims };
const RESULT: Statement<ResultClaims> = { typ: "docket-result+jwt", app: "tools", claims: ResultClaims };

export function signGrant(signer: Signer, claims: GrantClaims): Promise<string> { return sign(GRANT, signer, claims); }
export function signDecision(signer: Signer, claims: DecisionClaims): Promise<string> { return sign(DECISION, signer, claims); }
export function signResult(signer: Signer, claims: ResultClaims): Promise<string> { return sign(RESULT, signer, claims); }

/** Each verifier throws Problem `bad_signature` with the reason; what it returns is what was signed. */
export function verifyGrant(trust: Trust, jws: string, nowMs: number): Promise<GrantClaims> { return verify(GRANT, trust, jws, nowMs); }
export function verifyDecision(trust: Trust, jws: string, nowMs: number): Promise<DecisionClaims> { return verify(DECISION, trust, jws, nowMs); }
export function verifyResult(trust: Trust, jws: string, nowMs: number): Promise<ResultClaims> { return verify(RESULT, trust, jws, nowMs); }

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
  if (exp !== undefined && exp * 1000 <= nowMs - CLOCK_SKEW_MS) throw refuse(`it expired (exp ${String(exp)} s, now ${String(Math.floor(nowMs / 1000))} s)`);
  return parsed.data;
}
