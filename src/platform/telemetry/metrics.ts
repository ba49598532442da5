/**
 * Owns: every number that Docket reports of itself: one table, from which the instruments and docs/telemetry.md's list are made. Recording is
 * a call of nothing until a reader is installed.
 *
 * Labels are bounded: each has a closed list of words, or names that an operator installs (agent, tool, model). Never a session, run, tenant or person.
 */
type Labels<L extends string> = Readonly<Record<L, string>>;

type Kind = "counter" | "histogram" | "gauge";
export interface Instrument<K extends Kind = Kind, L extends string = string> {
  readonly kind: K;
  readonly about: string;
  readonly labels: readonly L[];
  /** UCUM. */
  readonly unit?: string;
  readonly buckets?: readonly number[];
  readonly apps: readonly ("gateway" | "sessions" | "tools" | "console")[];
}

const QUICK = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10] as const;
const SLOW = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600] as const;
const HUMAN = [10, 30, 60, 300, 900, 1800, 3600, 4 * 3600, 8 * 3600, 86_400, 3 * 86_400, 7 * 86_400] as const;

const instrument = <const K extends Kind, const L extends string = never>(kind: K, apps: Instrument["apps"], about: string, more: { readonly labels?: readonly L[]; readonly unit?: string; readonly buckets?: readonly number[] } = {}): Instrument<K, L> =>
  ({ kind, apps, about, labels: more.labels ?? [], ...(more.unit === undefined ? {} : { unit: more.unit }), ...(more.buckets === undefined ? {} : { buckets: more.buckets }) });

export const INSTRUMENTS = {
  "docket.events.accepted": instrument("counter", ["gateway"], "Events that the edge has said 202 to; `again`: the same one, repeated by its sender", { labels: ["result"] }),
  "docket.inbox.republished": instrument("counter", ["gateway"], "Events published again since no receipt had come"),
  "docket.inbox.oldest.seconds": instrument("gauge", ["gateway"], "Age of the oldest event that waits for the session's receipt", { unit: "s" }),
  "docket.deliveries": instrument("counter", ["gateway", "sessions", "tools", "console"], "Deliveries of a channel, by what the broker was told", { labels: ["channel", "answer"] }),
  "docket.delivery.duration.seconds": instrument("histogram", ["gateway", "sessions", "tools", "console"], "From a delivery to its acknowledgement", { labels: ["channel"], unit: "s", buckets: QUICK }),
  "docket.events.handled": instrument("counter", ["sessions"], "Input events that a session took, by its verdict", { labels: ["agent", "verdict"] }),
  "docket.events.deduplicated": instrument("counter", ["sessions"], "Events that a session had taken before (I2)", { labels: ["agent"] }),
  "docket.mailbox.wait.seconds": instrument("histogram", ["sessions"], "From an accepted event to the run that it starts", { labels: ["agent"], unit: "s", buckets: SLOW }),
  "docket.turn.duration.seconds": instrument("histogram", ["sessions"], "One turn with its first publications: load, decide, commit, publish", { labels: ["command"], unit: "s", buckets: QUICK }),
  "docket.runs.started": instrument("counter", ["sessions"], "Runs that began", { labels: ["agent"] }),
  "docket.runs.ended": instrument("counter", ["sessions"], "Runs that ended", { labels: ["agent", "outcome"] }),
  "docket.run.duration.seconds": instrument("histogram", ["sessions"], "From the begin of a run to its end, waits for people included", { labels: ["agent", "outcome"], unit: "s", buckets: HUMAN }),
  "gen_ai.client.operation.duration": instrument("histogram", ["sessions"], "Model calls, by how they ended", { labels: ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "error.type"], unit: "s", buckets: SLOW }),
  "gen_ai.client.token.usage": instrument("histogram", ["sessions"], "Tokens of a model call", { labels: ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.token.type"], unit: "{token}", buckets: [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576] }),
  "docket.model.cost.usd": instrument("counter", ["sessions"], "What model calls cost, in USD, as far as prices are known", { labels: ["agent", "model"] }),
  "docket.model.retries": instrument("counter", ["sessions"], "Model calls that failed and are tried again", { labels: ["agent", "kind"] }),
  "docket.tool.calls": instrument("counter", ["sessions"], "Results of tool calls, as the model sees them", { labels: ["tool", "status"] }),
  "docket.tool.retries": instrument("counter", ["sessions"], "Tries of tool calls that failed and are tried again", { labels: ["tool", "kind"] }),
  "docket.tool.duration.seconds": instrument("histogram", ["tools"], "Runs of a tool in the worker", { labels: ["tool", "outcome"], unit: "s", buckets: SLOW }),
  "docket.tools.running": instrument("gauge", ["tools"], "Tools that run now"),
  "docket.approvals.opened": instrument("counter", ["sessions"], "Questions to people", { labels: ["agent", "kind"] }),
  "docket.approvals.closed": instrument("counter", ["sessions"], "Questions that are no longer open: decided, expired, withdrawn", { labels: ["agent", "as"] }),
  "docket.approval.decision.seconds": instrument("histogram", ["sessions"], "From a question to the decision that settled it", { labels: ["agent"], unit: "s", buckets: HUMAN }),
  "docket.decisions.refused": instrument("counter", ["sessions"], "Decisions that changed nothing (I10), by why", { labels: ["code"] }),
  "docket.escalations": instrument("counter", ["sessions"], "Runs that stand still until a person decides, by why", { labels: ["agent", "reason"] }),
  "docket.dead.letters.recorded": instrument("counter", ["sessions"], "Dead letters that sessions recorded", { labels: ["kind", "reason"] }),
  "docket.guard.recoveries": instrument("counter", ["sessions"], "What guard and check-up put right: `publication` sent again, `model_call` of a dead host, `repair`, `quarantine`", { labels: ["what"] }),
  "docket.outbox.oldest.seconds": instrument("gauge", ["sessions"], "Age of the oldest publication without evidence, of the sessions that this host moves", { unit: "s" }),
  "docket.projector.lag.seconds": instrument("gauge", ["console"], "How long after its commit the newest journal entry was in the lists; 0 where none came within the last minute; the age of the oldest while the database takes none", { unit: "s" }),
  "docket.projector.entries.missing": instrument("gauge", ["console"], "Journal entries that the console knows of and has not got"),
  "docket.projector.entries": instrument("counter", ["console"], "Journal entries taken into the lists"),
  "docket.sessions": instrument("gauge", ["console"], "Sessions by status", { labels: ["status"] }),
  "docket.sessions.overdue": instrument("gauge", ["console"], "Sessions past their due time that have not moved"),
  "docket.approvals.waiting": instrument("gauge", ["console"], "Questions that nobody has answered"),
  "docket.approvals.expiring": instrument("gauge", ["console"], "Of these, those that expire within the hour"),
  "docket.dead.letters.open": instrument("gauge", ["console"], "Dead letters that nobody has settled", { labels: ["kind"] }),
} as const;

export type MetricName = keyof typeof INSTRUMENTS;
type LabelsOf<N extends MetricName> = (typeof INSTRUMENTS)[N]["labels"][number];
type NameOf<K extends Kind> = { [N in MetricName]: (typeof INSTRUMENTS)[N]["kind"] extends K ? N : never }[MetricName];
/** Labels are left out where a metric has none. */
type Rest<N extends MetricName> = [LabelsOf<N>] extends [never] ? [] : [labels: Labels<LabelsOf<N>>];

/** One reading of a gauge. */
export interface Reading<L extends string = string> { readonly value: number; readonly labels?: Labels<L> }

interface Meter {
  readonly record: (name: MetricName, value: number, labels: Labels<string>) => void;
  readonly watch: (name: MetricName, read: () => Promise<readonly Reading[]> | readonly Reading[]) => void;
}

let meter: Meter | undefined;
const NONE = {};

/** Numbers go there from now on; gives what takes it back. */
export function installMeter(sink: Meter): () => void {
  const before = meter;
  meter = sink;
  return () => { meter = before; };
}

/** Somebody takes numbers. Ask before computing one. */
export function metering(): boolean { return meter !== undefined; }

/** Adds to a counter. */
export function count<N extends NameOf<"counter">>(name: N, by: number, ...[labels]: Rest<N>): void { meter?.record(name, by, labels ?? NONE); }

/** One more value of a histogram, in its unit. */
export function measure<N extends NameOf<"histogram">>(name: N, value: number, ...[labels]: Rest<N>): void { meter?.record(name, value, labels ?? NONE); }

/** Has a gauge read whenever somebody looks. A reading that fails is left out. */
export function watch<N extends NameOf<"gauge">>(name: N, read: () => Promise<readonly Reading<LabelsOf<N>>[]> | readonly Reading<LabelsOf<N>>[]): void { meter?.watch(name, read); }
