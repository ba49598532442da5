/**
 * What is stored of a session outlives the build that wrote it (I12): test/fixtures/stored has sessions of every version, as they were stored,
 * and the shape that each version had. Both are kept for ever.
 *
 * The shape has changed and this test is red? Add a step to src/contracts/stored-version.ts, then record the new version:
 *   DOCKET_RECORD_STORED=1 npx vitest run --project unit test/unit/session/stored-versions.test.ts
 * A version that no release has had (`released: false` in its fixture) may be recorded once more instead.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { AS_STORED, readEntry, type JournalEntry, type ReadEntry, type SessionEvent } from "../../../src/contracts/journal.js";
import { STORED_VERSION, upcastDocument, upcastEntry, type UpcastStep } from "../../../src/contracts/stored-version.js";
import { continuesFrom } from "../../../src/session/core/digest.js";
import { fold } from "../../../src/session/core/evolve.js";
import type { OpenSession } from "../../../src/session/core/state.js";
import { examine } from "../../../src/session/host/checkup.js";
import { shapeOf } from "../../support/shape.js";
import { storedSessions } from "./stored-sessions.js";
import { Bench } from "./support.js";

const DIR = join(import.meta.dirname, "../../fixtures/stored");
const SHAPES = [{ file: "src/session/core/state.ts", name: "SessionState" }, { file: "src/contracts/journal.ts", name: "JournalEntry" }];

/** The compiler reads every type for it. */
const COMPILER_MS = 120_000;

interface Fixture { readonly version: number; readonly released: boolean; readonly sessions: Readonly<Record<string, { readonly document: unknown; readonly entries: readonly unknown[] }>> }

const fixtureFile = (version: number): string => join(DIR, `v${String(version)}.json`);
const shapeFile = (version: number): string => join(DIR, `v${String(version)}.shape.txt`);
const fixtureOf = (version: number): Fixture => JSON.parse(readFileSync(fixtureFile(version), "utf8")) as Fixture;
const versions = Array.from({ length: STORED_VERSION }, (_, n) => n + 1);

beforeAll(() => {
  if (process.env["DOCKET_RECORD_STORED"] !== "1") return;
  if (existsSync(fixtureFile(STORED_VERSION)) && fixtureOf(STORED_VERSION).released) throw new Error(`version ${String(STORED_VERSION)} is released: what it stored is a fact. Add a step to src/contracts/stored-version.ts`);
  writeFileSync(fixtureFile(STORED_VERSION), `${JSON.stringify({ version: STORED_VERSION, released: false, sessions: storedSessions() } satisfies Fixture, null, 1)}\n`);
  writeFileSync(shapeFile(STORED_VERSION), shapeOf(SHAPES));
}, COMPILER_MS);

/** In the form in which a store gives it back. */
const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe("the shape of what is stored", () => {
  it("is the one that this version was recorded with: another shape is another version", () => {
    expect(shapeOf(SHAPES)).toBe(readFileSync(shapeFile(STORED_VERSION), "utf8"));
  }, COMPILER_MS);

  it("has a fixture and a recorded shape for each version that there ever was", () => {
    const files = readdirSync(DIR);
    expect(files).toEqual(expect.arrayContaining(versions.flatMap((version) => [`v${String(version)}.json`, `v${String(version)}.shape.txt`])));
    expect(files.filter((file) => Number(/^v(\d+)/.exec(file)?.[1] ?? 0) > STORED_VERSION)).toEqual([]);
  });
});

const sessions = versions.flatMap((version) => readdirSync(DIR).filter((file) => file.startsWith(`v${String(version)}.`) || file.startsWith(`v${String(version)}-`)).filter((file) => file.endsWith(".json"))
  .flatMap((file) => Object.entries((JSON.parse(readFileSync(join(DIR, file), "utf8")) as Fixture).sessions).map(([name, stored]) => ({ name: `${file} ${name}`, stored }))));

describe.each(sessions)("the stored session $name", ({ stored }) => {
  const document = upcastDocument(stored.document) as unknown as OpenSession;
  const entries = stored.entries.map((entry) => readEntry(JSON.stringify(entry)));

  it("is read: its journal folds to its document (I7), and passes the check-up that a host makes when it takes it up", async () => {
    expect(asStored(fold(entries))).toEqual(asStored(document));
    expect(document.v).toBe(STORED_VERSION);
    const read = (fromRev: number, toRev: number): Promise<ReadEntry[]> => Promise.resolve(entries.filter(({ rev }) => rev >= fromRev && rev <= toRev));
    expect(await examine(document, { entries: read, checkpoint: () => Promise.resolve(undefined) })).toBeUndefined();
  });

  it.runIf(document.status === "AWAITING_APPROVAL")("is resolved: the arguments that were approved are those that run", () => {
    const bench = new Bench();
    bench.state = document;
    bench.entries.push(...entries);
    bench.atMs = document.updatedAtMs + 1;
    const [{ argsDigest } = { argsDigest: "" }] = document.approvals;
    expect(bench.decides("approve").ok).toBe(true);
    expect(bench.eventsOf("ToolCallDispatched")).toHaveLength(1);
    expect(bench.call()).toMatchObject({ argsDigest, permit: { argsDigest }, life: { phase: "dispatched" } });
    expect(fold(bench.entries)).toEqual(bench.state);
  });
});

describe("the chain of versions", () => {
  const steps: readonly UpcastStep[] = [
    { document: ({ greeting, ...rest }) => ({ ...rest, hello: greeting }), events: (events) => events.map((event) => ({ ...event, second: true })) },
    { document: (document) => ({ ...document, third: true }), events: (events) => [...events, { type: "Third" }] },
  ];

  it.each([[1, { v: 3, hello: "hi", third: true }], [2, { v: 3, greeting: "hi", third: true }], [3, { v: 3, greeting: "hi" }]])("takes version %i through every step that it lacks, and through no other", (v, expected) => {
    expect(upcastDocument({ v, greeting: "hi" }, steps)).toEqual(expected);
  });

  it("takes the events of an entry, and leaves the rest of it", () => {
    expect(upcastEntry({ v: 1, rev: 7, events: [{ type: "First" }] }, steps)).toEqual({ v: 3, rev: 7, events: [{ type: "First", second: true }, { type: "Third" }] });
  });

  it("refuses what a newer build wrote, and what has no version", () => {
    for (const read of [() => upcastDocument({ v: 4 }, steps), () => upcastEntry({ v: 4, events: [] }, steps)]) expect(read).toThrow(expect.objectContaining({ code: "newer_version", retryable: true, message: expect.stringContaining("version 4; this build reads versions up to 3") as string }) as Error);
    for (const damaged of [null, {}, { v: "1" }, { v: 0 }, { v: 1.5 }]) expect(() => upcastDocument(damaged, steps)).toThrow(expect.objectContaining({ code: "store_unavailable" }) as Error);
  });

  it("the digests of a journal stay those over the events as they were stored", () => {
    const bench = new Bench();
    bench.receive();
    bench.answer();
    const [first, second] = bench.entries as [JournalEntry, JournalEntry];
    const upcast: ReadEntry = { ...second, events: [...second.events, { type: "GuardReleased", generation: 1 } satisfies SessionEvent], [AS_STORED]: second.events };
    expect(continuesFrom(first.digest, upcast)).toBe(true);
    expect(continuesFrom(first.digest, { ...upcast, [AS_STORED]: upcast.events })).toBe(false);
    expect(JSON.stringify(upcast)).not.toContain("stored");
  });
});
