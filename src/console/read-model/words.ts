/** Owns: text search: which words of a text are kept, and what a search asks for. A word is found by its beginning. */
import { sql, type ExpressionBuilder } from "kysely";
import type { ReadModel, Tables } from "./database.js";

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
export function matches(eb: ExpressionBuilder<Tables, "sessions">, tenant: string, { words, rare }: Search): ReturnType<typeof eb.and> {
  if (words.length === 0) return eb.and([sql<boolean>`1 = 0`]);
  return eb.and(words.map((word) => {
    const holders = eb.selectFrom("words").where("words.tenant", "=", tenant).where("words.word", ">=", word).where("words.word", "<", after(word));
    return word === rare ? eb("sessions.actor_id", "in", holders.select("words.actor_id")) : eb.exists(holders.select("words.actor_id").whereRef("words.actor_id", "=", "sessions.actor_id"));
  }));
}

/** Above every word that begins so. */
function after(word: string): string { return `${word}\u{10ffff}`; }
