/** Owns: text search: which words of a text are kept, and what a search asks for. A word is found by its beginning. */
import { sql, type RawBuilder } from "kysely";
import type { ReadModel } from "./database.js";

const LONGEST = 32;
/** Of one text; a session's messages are searched by their beginnings. */
const PER_TEXT = 40;
const PER_SEARCH = 6;
/** With fewer sessions than this having a word, the search begins at the word; else at the newest session. */
const FEW = 2_000;

/** The words of a text, in small letters, each once. */
export function wordsOf(text: string, max = PER_TEXT): string[] {
  const words = new Set<string>();
  for (const [word] of text.toLowerCase().matchAll(/[\p{L}\p{N}]+/gu)) {
    words.add(word.slice(0, LONGEST));
    if (words.size >= max) break;
  }
  return [...words];
}

export interface Search { readonly words: readonly string[]; /** Rare enough to start from. */ readonly rare: string | undefined }

/** Looks how common the words are. */
export async function planSearch(db: ReadModel, tenant: string, text: string): Promise<Search> {
  const words = wordsOf(text, PER_SEARCH);
  let best: { word: string; count: number } | undefined;
  for (const word of words) {
    const few = db.selectFrom("words").select("actor_id").where("tenant", "=", tenant).where("word", ">=", word).where("word", "<", after(word)).limit(FEW + 1);
    const { count } = await db.selectFrom(few.as("few")).select((eb) => eb.fn.countAll<number>().as("count")).executeTakeFirstOrThrow();
    if (best === undefined || count < best.count) best = { word, count };
  }
  return { words, rare: best !== undefined && best.count <= FEW ? best.word : undefined };
}

/** The condition on a session's row. A search without any word finds nothing. */
export function matches(db: ReadModel, tenant: string, { words, rare }: Search): RawBuilder<boolean> {
  if (words.length === 0) return sql<boolean>`1 = 0`;
  return sql<boolean>`(${sql.join(words.map((word) => (word === rare ? sql`sessions.actor_id in ${holders(db, tenant, word)}` : sql`exists ${holders(db, tenant, word).where("words.actor_id", "=", sql<string>`sessions.actor_id`)}`)), sql` and `)})`;
}

/** The same, each word as a set that is made whole. */
export function holdsAll(db: ReadModel, tenant: string, words: readonly string[]): RawBuilder<boolean> {
  return sql<boolean>`(${sql.join(words.map((word) => sql`sessions.actor_id in ${holders(db, tenant, word)}`), sql` and `)})`;
}

function holders(db: ReadModel, tenant: string, word: string) {
  return db.selectFrom("words").select("words.actor_id").where("words.tenant", "=", tenant).where("words.word", ">=", word).where("words.word", "<", after(word));
}

/** Above every word that begins so. */
function after(word: string): string { return `${word}\u{10ffff}`; }
