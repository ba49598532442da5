/**
 * Owns: the audit on the wire: what a row says, how rows are chained, what a signed head says, and the lines of an export.
 *
 * - One chain per installation. A row's hash covers its number, the hash before it and the hash of its content, so no row can be
 *   changed, taken out, put in or moved without breaking every hash behind it.
 * - The content is hashed by itself: a reader who may not see a row (another tenant's) can still check the chain.
 * - A head is a signature over the newest hash. Who rewrites the whole chain cannot sign it.
 */
import { z } from "zod";
import { sha256Hex } from "./ids.js";
import { canonicalize } from "./json.js";

const Hash = z.string().regex(/^[0-9a-f]{64}$/, "expected a lower-case hex SHA-256");

/** What a row says. `tenant` is empty where the installation itself is meant, or nobody was known. */
export const AuditContent = z.object({
  auditId: z.string(), atMs: z.number().int(), tenant: z.string(), principalId: z.string(), keyId: z.string(),
  /** `approval.approve`, `session.cancel`, `dead-letter.redrive` … */
  action: z.string(), target: z.string(),
  /** `requested` before the attempt, then the verdict or the problem code. */
  outcome: z.string(),
  reason: z.string(), detail: z.record(z.string(), z.unknown()), ip: z.string(),
});
export type AuditContent = z.infer<typeof AuditContent>;

/** A row's place in the chain. */
export interface ChainLink { readonly seq: number; readonly prev: string; readonly contentHash: string; readonly hash: string }

/** What the first row of an installation follows. */
export function genesisOf(installation: string): string { return sha256Hex(`docket-audit:1\n${installation}`); }
/** `text`: the content as JSON. */
export function contentHashOf(text: string): string { return sha256Hex(canonicalize(text)); }
export function rowHashOf({ seq, prev, contentHash }: Omit<ChainLink, "hash">): string { return sha256Hex(`docket-audit-row:1\n${String(seq)}\n${prev}\n${contentHash}`); }

/** Claims of a signed head. `export` ends an export and says where it began; `periodic` is taken now and then. */
export const AuditHeadClaims = z.object({
  iss: z.literal("docket/console"), aud: z.literal("docket/audit"), installation: z.string().min(1),
  purpose: z.enum(["periodic", "export"]),
  seq: z.number().int().min(1), hash: Hash,
  /** Purpose `export`: the first row of the file, the hash that it follows, and whether older rows are kept that the file leaves out. */
  from: z.object({ seq: z.number().int().min(1), prev: Hash, olderKept: z.boolean() }).optional(),
  /** Purpose `export`: the digest of the head line's `withheld`. Copies of older versions do not say it. */
  withheld: Hash.optional(),
  iat: z.number().int(),
});
export type AuditHeadClaims = z.infer<typeof AuditHeadClaims>;

/** Action of the row that takes the place of rows whose time is over. Its detail says how far they went and with which hash they ended. */
export const AUDIT_CHECKPOINT = "audit.checkpoint";
export const CheckpointDetail = z.object({ uptoSeq: z.number().int().min(1), hash: Hash, rows: z.number().int().min(1) });

/** Numbers in ascending order as ranges, `3-5,9`: the rows whose content an export leaves out. Signed, so that nobody can leave out another one afterwards. */
export class RowRanges {
  readonly #ranges: [first: number, last: number][] = [];
  add(seq: number): void {
    const range = this.#ranges.at(-1);
    if (range !== undefined && range[1] === seq - 1) range[1] = seq;
    else this.#ranges.push([seq, seq]);
  }
  get text(): string { return this.#ranges.map(([first, last]) => (first === last ? String(first) : `${String(first)}-${String(last)}`)).join(","); }
  /** The first number that is here and not in `other`, which is ranges as text. */
  firstBeyond(other: string): number | undefined {
    const others = other.split(",").map((range) => range.split("-").map(Number)).map(([first = 0, last = first]) => [first, last] as const);
    for (const [first, last] of this.#ranges) {
      for (let seq = first; seq <= last;) {
        const covering = others.find(([from, to]) => from <= seq && seq <= to);
        if (covering === undefined) return seq;
        seq = covering[1] + 1;
      }
    }
    return undefined;
  }
}
export function withheldDigestOf(ranges: string): string { return sha256Hex(`docket-audit-withheld:1\n${ranges}`); }

/** One line of an export. Rows of other tenants have no `entry`; the head that ends it says which those are. */
export const AuditLine = z.discriminatedUnion("type", [
  z.object({ type: z.literal("export"), v: z.literal(1), installation: z.string(), exportedAtMs: z.number().int(), tenant: z.string() }),
  z.object({ type: z.literal("row"), seq: z.number().int().min(1), prev: Hash, contentHash: Hash, hash: Hash, entry: z.unknown().optional() }),
  z.object({ type: z.literal("head"), jws: z.string().max(4096), withheld: z.string().optional() }),
]);
export type AuditLine = z.infer<typeof AuditLine>;

/** Answer of GET /v1/audit/chain. */
export const AuditChainState = z.object({
  installation: z.string(), firstSeq: z.number().int(), headSeq: z.number().int(), headHash: z.string(),
  /** The newest signed head. */
  signedSeq: z.number().int(), signedAtMs: z.number().int().nullable(),
  /** How far the console itself has checked the chain, and when it last got to the end. */
  verifiedSeq: z.number().int(), verifiedAtMs: z.number().int().nullable(),
  /** The first row that does not fit. */
  broken: z.object({ seq: z.number().int(), reason: z.string() }).nullable(),
});
export type AuditChainState = z.infer<typeof AuditChainState>;

/** What is wrong with a row that is to follow `before`; undefined where it fits. `text`: its content as JSON, where the reader may see it. */
export function faultOf(row: ChainLink, text: string | undefined, before: { readonly seq: number; readonly hash: string }): string | undefined {
  if (row.seq <= before.seq) return `row ${String(row.seq)} stands behind row ${String(before.seq)}: rows were reordered or repeated`;
  if (row.seq > before.seq + 1) return `${row.seq === before.seq + 2 ? `row ${String(before.seq + 1)} is` : `rows ${String(before.seq + 1)} to ${String(row.seq - 1)} are`} missing before row ${String(row.seq)}`;
  if (row.prev !== before.hash) return `row ${String(row.seq)} does not follow the row before it: a row was put in, taken out or changed`;
  if (text !== undefined && contentHashOf(text) !== row.contentHash) return `the content of row ${String(row.seq)} was changed`;
  if (rowHashOf(row) !== row.hash) return `the hash of row ${String(row.seq)} is not that of its place and content`;
  return undefined;
}
