/**
 * Owns: keeping the audit provable while the console runs: checking the chain again and again, signing its head, and exporting it.
 *
 * - A head is signed only over rows that were checked since the head before: what somebody changed in the file is never signed.
 * - What does not fit is reported (log, API, Audit page) and stays reported; the console goes on, and goes on writing rows.
 */
import { AuditContent, CheckpointDetail, faultOf, genesisOf, RowRanges, withheldDigestOf, type AuditChainState, type AuditHeadClaims, type AuditLine } from "../contracts/audit.js";
import { errorFields } from "../platform/log.js";
import type { ConsoleConfig } from "./config.js";
import type { ConsoleDeps } from "./ports.js";
import type { AuditRow } from "./read-model/database.js";
import { addHead, chainEnds, checkpointAt, headsBetween, installationOf, newestHead, rowsAfter, type ChainEnds } from "./read-model/audit.js";
import type { ReadModel } from "./read-model/database.js";

export interface AuditKeeper {
  /** Checks what is new, or from time to time all of it, and signs the head when it is due. */
  look(): Promise<void>;
  /** Signs the head now, where there are rows behind the last signed one. */
  sign(): Promise<void>;
  state(): Promise<AuditChainState>;
  /** The lines of an export, without line ends: rows of `tenant` and of the installation in full, others as hashes. */
  lines(tenant: string, fromSeq: number): AsyncGenerator<string, void, undefined>;
}

type Settings = ConsoleConfig["audit"];
interface Place { readonly seq: number; readonly hash: string }

export function createAuditKeeper(db: ReadModel, deps: Pick<ConsoleDeps, "auditSigner" | "clock" | "logger">, settings: Settings): AuditKeeper {
  let checked: Place | undefined;
  let broken: AuditChainState["broken"] = null;
  let verifiedAtMs: number | null = null;
  let passStartedAtMs = -Infinity;
  let signedAtMs = -Infinity;

  const report = (seq: number, reason: string): void => {
    if (broken === null) deps.logger.error({ seq, reason }, "the audit chain does not hold: rows were changed outside of the console");
    broken = broken !== null && broken.seq <= seq ? broken : { seq, reason };
  };

  /** Goes on to the last row there is now. */
  const check = async (): Promise<ChainEnds | undefined> => {
    const ends = await chainEnds(db);
    if (ends === undefined) return undefined;
    const nowMs = deps.clock.nowMs();
    if (nowMs - passStartedAtMs >= settings.fullCheckEveryMs) { checked = undefined; passStartedAtMs = nowMs; }
    const signed = await newestHead(db);
    const least = Math.max(checked?.seq ?? 0, signed?.seq ?? 0);
    if (least > ends.last.seq) report(ends.last.seq + 1, `rows ${String(ends.last.seq + 1)} to ${String(least)} were here and are gone`);
    let at = checked ?? { seq: ends.first.seq - 1, hash: ends.first.prev };
    const beginning = checked === undefined ? await faultOfBeginning(db, ends.first) : undefined;
    if (beginning !== undefined) report(ends.first.seq, beginning);
    while (at.seq < ends.last.seq) {
      const rows = await rowsAfter(db, at.seq, ends.last.seq, settings.batch);
      const newest = rows.at(-1);
      if (newest === undefined) { report(at.seq + 1, `rows behind row ${String(at.seq)} are missing`); break; }
      for (const row of rows) {
        const reason = faultOfRow(row, at);
        if (reason !== undefined) report(row.seq, reason);
        at = row;
      }
      for (const head of await headsBetween(db, rows[0]?.seq ?? 0, newest.seq)) {
        const claims = await deps.auditSigner.verify(head.jws, nowMs).catch((error: unknown) => { report(head.seq, `the signed head at row ${String(head.seq)} does not verify: ${errorFields(error).error}`); return undefined; });
        if (claims !== undefined && (claims.seq !== head.seq || claims.hash !== rows.find((row) => row.seq === head.seq)?.hash)) report(head.seq, `the signed head at row ${String(head.seq)} is for another row: rows up to it were rewritten`);
      }
    }
    checked = { seq: at.seq, hash: at.hash };
    verifiedAtMs = nowMs;
    return ends;
  };

  const claimsFor = async (purpose: AuditHeadClaims["purpose"], { seq, hash }: Place, copy: Pick<AuditHeadClaims, "from" | "withheld"> = {}): Promise<AuditHeadClaims> => ({
    iss: "docket/console", aud: "docket/audit", installation: await installationOf(db), purpose, seq, hash, ...copy, iat: Math.floor(deps.clock.nowMs() / 1000),
  });

  const sign = async (): Promise<void> => {
    const ends = await check();
    if (ends === undefined || broken !== null) return;
    const before = await newestHead(db);
    const nowMs = deps.clock.nowMs();
    signedAtMs = nowMs;
    if (before !== undefined && before.seq >= ends.last.seq) return;
    await addHead(db, { seq: ends.last.seq, hash: ends.last.hash, at: nowMs, jws: await deps.auditSigner.sign(await claimsFor("periodic", ends.last)) });
    // In the log too: whoever rewrites the file cannot rewrite what was shipped elsewhere.
    deps.logger.info({ seq: ends.last.seq, hash: ends.last.hash }, "audit head signed");
  };

  return {
    sign,
    look: async () => {
      if (deps.clock.nowMs() - signedAtMs >= settings.signEveryMs) await sign();
      else await check();
    },
    async state() {
      const ends = await chainEnds(db);
      const head = await newestHead(db);
      return {
        installation: await installationOf(db), firstSeq: ends?.first.seq ?? 0, headSeq: ends?.last.seq ?? 0, headHash: ends?.last.hash ?? "",
        signedSeq: head?.seq ?? 0, signedAtMs: head?.at ?? null, verifiedSeq: checked?.seq ?? 0, verifiedAtMs, broken,
      };
    },
    async *lines(tenant, fromSeq) {
      const ends = await chainEnds(db);
      const line = (value: AuditLine): string => JSON.stringify(value);
      yield line({ type: "export", v: 1, installation: await installationOf(db), exportedAtMs: deps.clock.nowMs(), tenant });
      if (ends === undefined || fromSeq > ends.last.seq) return;
      const firstSeq = Math.max(fromSeq, ends.first.seq);
      let from: AuditHeadClaims["from"];
      const withheld = new RowRanges();
      for (let after = firstSeq - 1; after < ends.last.seq;) {
        const rows = await rowsAfter(db, after, ends.last.seq, settings.batch);
        const [first] = rows, last = rows.at(-1);
        if (first === undefined || last === undefined) break; // the missing end shows: the head below is for another row
        from ??= { seq: first.seq, prev: first.prev, olderKept: first.seq > ends.first.seq };
        const heads = new Map((await headsBetween(db, first.seq, last.seq)).map((head) => [head.seq, head.jws]));
        for (const row of rows) {
          const mayRead = isReadBy(row.content, tenant);
          if (!mayRead) withheld.add(row.seq);
          yield rowLine(row, mayRead);
          const jws = heads.get(row.seq);
          if (jws !== undefined) yield line({ type: "head", jws });
        }
        after = last.seq;
      }
      const claims = await claimsFor("export", ends.last, { ...(from === undefined ? {} : { from }), withheld: withheldDigestOf(withheld.text) });
      yield line({ type: "head", jws: await deps.auditSigner.sign(claims), withheld: withheld.text });
    },
  };
}

/** The first row follows the installation's beginning, or what a checkpoint stands for. */
async function faultOfBeginning(db: ReadModel, { seq, prev }: ChainEnds["first"]): Promise<string | undefined> {
  if (seq === 1) return prev === genesisOf(await installationOf(db)) ? undefined : "row 1 is not the first row of this installation";
  const detail = CheckpointDetail.safeParse((await checkpointAt(db, seq - 1))?.detail);
  return detail.success && detail.data.uptoSeq === seq - 1 && detail.data.hash === prev ? undefined : `rows before row ${String(seq)} are gone, and no checkpoint stands for them`;
}

/** The columns that lists search by must say what the content says. */
function faultOfRow(row: AuditRow, before: Place): string | undefined {
  try {
    const fault = faultOf({ ...row, contentHash: row.content_hash }, row.content, before);
    if (fault !== undefined) return fault;
    const { tenant, atMs, auditId, action } = AuditContent.parse(JSON.parse(row.content));
    return tenant === row.tenant && atMs === row.at && auditId === row.audit_id && action === row.action ? undefined : `the columns of row ${String(row.seq)} say something else than its content`;
  } catch (error) {
    return `the content of row ${String(row.seq)} cannot be read: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The content goes out as it is stored, so that what was hashed is what is read. */
function rowLine({ seq, prev, content_hash, hash, content }: AuditRow, withContent: boolean): string {
  const place = JSON.stringify({ type: "row", seq, prev, contentHash: content_hash, hash });
  return withContent ? `${place.slice(0, -1)},"entry":${content}}` : place;
}

/** By what was hashed. What cannot be read is shown to all: it is a fault. */
function isReadBy(content: string, tenant: string): boolean {
  try {
    return [tenant, ""].includes(AuditContent.parse(JSON.parse(content)).tenant);
  } catch {
    return true;
  }
}
