/** Owns: the shape of an applier: one event type folded into the parts of a state. */
import type { SessionEvent, SessionEventOf } from "../../../contracts/journal.js";
import type { EntryAt, Parts } from "../parts.js";

export type Applier<T extends SessionEvent["type"]> = (parts: Parts, event: SessionEventOf<T>, entry: EntryAt) => Parts;
/** Appliers for some event types, one each. */
export type AppliersOf<T extends SessionEvent["type"]> = { readonly [K in T]: Applier<K> };
