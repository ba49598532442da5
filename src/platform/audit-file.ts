/**
 * Owns: checking an export of the audit, offline: with the file and the public keys (`trust.jwks.json`), nothing else. Finds rows that
 * were changed, taken out, put in, moved or repeated, an end that is missing, and heads that the console did not sign.
 */
import { AUDIT_CHECKPOINT, AuditContent, AuditLine, CheckpointDetail, faultOf, genesisOf, RowRanges, withheldDigestOf, type AuditHeadClaims } from "../contracts/audit.js";
import { parseLossless, stringifyLossless } from "../contracts/json.js";
import type { Trust } from "./keys.js";
import { verifyAuditHead } from "./signing.js";

export interface AuditFileOptions {
  readonly trust: Trust;
  readonly nowMs: number;
  /** A head that was kept elsewhere; the file must contain the row that it signs. */
  readonly knownHead?: string;
  /** The file must reach this row. */
  readonly atLeastSeq?: number;
}

export interface AuditFileReport {
  readonly ok: boolean;
  readonly installation: string;
  readonly firstSeq: number; readonly lastSeq: number;
  /** Rows of which the file has only the hash: other tenants'. */
  readonly hidden: number;
  /** Heads whose signature and row are right. */
  readonly heads: number;
  /** The last row that such a head, or the one that was kept elsewhere, stands for; 0 for none. Rows behind it fit together, which a forger could make them do. */
  readonly signedSeq: number;
  readonly signedAtMs: number | null;
  /** The file leaves older rows out that the console still had. */
  readonly partial: boolean;
  /** The first fault: the line of the file, the row where it is known (where the end is missing: the first row that is not there), and what is wrong. */
  readonly fault: { readonly line: number; readonly seq: number; readonly reason: string } | null;
}

class Fault extends Error {
  constructor(readonly seq: number, reason: string) { super(reason); }
}

/** Reads the lines once, in order. Never throws for what is in the file: that is the report. */
export async function verifyAuditFile(lines: AsyncIterable<string> | Iterable<string>, options: AuditFileOptions): Promise<AuditFileReport> {
  const reader = new AuditFileReader(options);
  let number = 0;
  try {
    for await (const text of lines) {
      number += 1;
      if (text.trim() !== "") await reader.line(text);
    }
    reader.end();
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    return reader.report({ line: number, seq: error.seq, reason: error.message });
  }
  return reader.report(null);
}

class AuditFileReader {
  readonly #options: AuditFileOptions;
  #installation: string | undefined;
  #first: { readonly seq: number; readonly prev: string } | undefined;
  #last: { readonly seq: number; readonly hash: string } | undefined;
  #closing: AuditHeadClaims | undefined;
  /** Rows without content, and which of them the head that ends the file lists. */
  readonly #withheld = new RowRanges();
  #listed = "";
  #checkpoint: { readonly uptoSeq: number; readonly hash: string } | undefined;
  #known: AuditHeadClaims | undefined;
  #hidden = 0;
  #heads = 0;
  #signedSeq = 0;

  constructor(options: AuditFileOptions) { this.#options = options; }

  async line(text: string): Promise<void> {
    const read = readLine(text);
    const at = (this.#last?.seq ?? 0) + 1;
    if (read === undefined) throw new Fault(at, "the line is not one of an audit export");
    if (this.#closing !== undefined) throw new Fault(at, "lines follow the head that ends the export");
    if (this.#installation === undefined) {
      if (read.line.type !== "export") throw new Fault(at, "the file does not begin with the line of an audit export");
      this.#installation = read.line.installation;
      if (this.#options.knownHead !== undefined) this.#known = await this.#verified(this.#options.knownHead, "the head that was kept elsewhere");
      return;
    }
    switch (read.line.type) {
      case "export": throw new Fault(at, "a second export begins in the same file");
      case "row": { this.#row(read.line, read.entryText, read.entry); return; }
      case "head": { await this.#head(read.line); return; }
    }
  }

  #row(row: Extract<AuditLine, { type: "row" }>, text: string | undefined, entry: unknown): void {
    this.#first ??= { seq: row.seq, prev: row.prev };
    const fault = faultOf(row, text, this.#last ?? { seq: row.seq - 1, hash: row.prev });
    if (fault !== undefined) throw new Fault(row.seq, fault);
    this.#last = { seq: row.seq, hash: row.hash };
    if (this.#known?.seq === row.seq) {
      if (this.#known.hash !== row.hash) throw new Fault(row.seq, `row ${String(row.seq)} is not the one of the head that was kept elsewhere: rows up to it were rewritten`);
      this.#signedSeq = row.seq;
    }
    if (text === undefined) { this.#hidden += 1; this.#withheld.add(row.seq); return; }
    const content = AuditContent.safeParse(entry);
    if (!content.success) throw new Fault(row.seq, `the content of row ${String(row.seq)} is not that of an audit row`);
    if (content.data.action === AUDIT_CHECKPOINT) {
      const detail = CheckpointDetail.safeParse(content.data.detail);
      if (!detail.success) throw new Fault(row.seq, `the checkpoint in row ${String(row.seq)} does not say what it stands for`);
      this.#checkpoint = detail.data;
    }
  }

  async #head({ jws, withheld = "" }: Extract<AuditLine, { type: "head" }>): Promise<void> {
    const seq = this.#last?.seq ?? 0;
    const claims = await this.#verified(jws, `the head behind row ${String(seq)}`);
    if (claims.seq !== seq) throw new Fault(seq, `the head behind row ${String(seq)} signs row ${String(claims.seq)}: rows were taken out or put in`);
    if (claims.hash !== this.#last?.hash) throw new Fault(seq, `the head behind row ${String(seq)} signs another row ${String(seq)}: rows up to it were rewritten`);
    this.#heads += 1;
    this.#signedSeq = seq;
    if (claims.purpose === "export") [this.#closing, this.#listed] = [claims, withheld];
  }

  async #verified(jws: string, what: string): Promise<AuditHeadClaims> {
    const seq = this.#last?.seq ?? 0;
    let claims: AuditHeadClaims;
    try {
      claims = await verifyAuditHead(this.#options.trust, jws, this.#options.nowMs);
    } catch (error) {
      throw new Fault(seq, `${what} was not signed by a console that is trusted here: ${error instanceof Error ? error.message : String(error)}`);
    }
    if (claims.installation !== this.#installation) throw new Fault(seq, `${what} belongs to installation ${claims.installation}, the file to ${this.#installation ?? "none"}`);
    return claims;
  }

  end(): void {
    const closing = this.#closing, first = this.#first, last = this.#last;
    const seq = last?.seq ?? 0;
    if (this.#installation === undefined) throw new Fault(0, "the file is empty");
    if (closing === undefined || last === undefined || first === undefined) throw new Fault(seq + 1, `the file ends after row ${String(seq)} without the signed head that ends every export: its end is missing, ${this.#missingFrom(seq + 1)}`);
    if (closing.from === undefined || closing.from.seq !== first.seq || closing.from.prev !== first.prev) throw new Fault(first.seq, `the export began with row ${String(closing.from?.seq ?? 0)}, the file begins with row ${String(first.seq)}: its beginning is missing`);
    if (!closing.from.olderKept) this.#checkBeginning(first);
    if (closing.withheld !== undefined) this.#checkWithheld(closing.withheld, seq);
    if (this.#known !== undefined && this.#known.seq > seq) throw new Fault(seq + 1, `the head that was kept elsewhere signs row ${String(this.#known.seq)}, and the file ends with row ${String(seq)}: rows are missing at the end`);
    const least = this.#options.atLeastSeq;
    if (least !== undefined && seq < least) throw new Fault(seq + 1, `the file ends with row ${String(seq)}, expected at least row ${String(least)}: rows are missing at the end`);
  }

  /** What a file without its end lacks, as far as can be told without it. */
  #missingFrom(next: number): string {
    const least = Math.max(this.#options.atLeastSeq ?? 0, this.#known?.seq ?? 0);
    return least < next ? `that head alone or rows from ${String(next)} on too` : `rows ${String(next)} to ${String(least)} at least`;
  }

  /** A row without content is one that the console left out, not one that somebody emptied later. */
  #checkWithheld(signed: string, lastSeq: number): void {
    if (withheldDigestOf(this.#listed) !== signed) throw new Fault(lastSeq, "the list of rows whose content was left out is not the one that was signed");
    const emptied = this.#withheld.firstBeyond(this.#listed);
    if (emptied !== undefined) throw new Fault(emptied, `the content of row ${String(emptied)} was taken out`);
  }

  /** What is gone before the first row must be what a checkpoint stands for. */
  #checkBeginning(first: { readonly seq: number; readonly prev: string }): void {
    if (first.seq === 1) {
      if (first.prev !== genesisOf(this.#installation ?? "")) throw new Fault(1, "row 1 is not the first row of this installation");
      return;
    }
    if (this.#checkpoint?.uptoSeq === first.seq - 1 && this.#checkpoint.hash === first.prev) return;
    throw new Fault(first.seq, `rows before row ${String(first.seq)} are gone, and no checkpoint stands for them`);
  }

  report(fault: AuditFileReport["fault"]): AuditFileReport {
    return {
      ok: fault === null, installation: this.#installation ?? "", firstSeq: this.#first?.seq ?? 0, lastSeq: this.#last?.seq ?? 0, hidden: this.#hidden, heads: this.#heads, signedSeq: this.#signedSeq,
      signedAtMs: this.#closing === undefined ? null : this.#closing.iat * 1000, partial: this.#closing?.from?.olderKept === true, fault,
    };
  }
}

interface ReadLine { readonly line: AuditLine; readonly entryText: string | undefined; readonly entry: unknown }

/** The content is read without rounding, since the hash is over its digits. */
function readLine(text: string): ReadLine | undefined {
  try {
    const line = AuditLine.parse(JSON.parse(text));
    const whole = parseLossless(text) as { entry?: unknown };
    return { line, entryText: whole.entry === undefined ? undefined : stringifyLossless(whole.entry), entry: line.type === "row" ? line.entry : undefined };
  } catch {
    return undefined;
  }
}
