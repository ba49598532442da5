/**
 * Owns: the envelope (DESIGN 2): CloudEvents 1.0, structured JSON, with Docket's extensions. `data` is kept as JSON
 * text, so that no hop rounds a number.
 */
import { z } from "zod";
import { SessionId, Tenant } from "./ids.js";
import { parseLossless, stringifyLossless } from "./json.js";
import { Problem, zodErrors } from "./problems.js";

const Attribute = z.string().min(1).max(1024);
/** W3C trace parent. Anything else crashed older sidecars (trap, DESIGN 7.7), so it is dropped at the edge. */
const TraceParent = z.string().regex(/^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/);

/** Who caused an event. `class` decides what it may do: a model, an agent or a webhook can never decide an approval (I4). */
export const Principal = z.object({
  id: z.string().min(1).max(200),
  class: z.enum(["person", "machine", "webhook", "agent", "system"]),
  roles: z.array(z.string().max(100)).max(50).default([]),
  /** Groups that the identity provider says the person is in; approver rules may name them. */
  groups: z.array(z.string().min(1).max(100)).max(50).optional(),
});
export type Principal = z.infer<typeof Principal>;

/** Envelope attributes; `data` travels beside them as text. */
export const EnvelopeAttributes = z.object({
  specversion: z.literal("1.0"),
  id: Attribute,
  source: Attribute,
  type: Attribute,
  subject: SessionId.optional(),
  time: z.iso.datetime({ offset: true }).optional(),
  datacontenttype: z.string().max(200).optional(),
  dataschema: z.string().max(1024).optional(),
  tenant: Tenant.optional(),
  partitionkey: z.string().max(300).optional(),
  traceparent: TraceParent.optional().catch(undefined),
  expirytime: z.iso.datetime({ offset: true }).optional(),
  correlationid: z.string().max(200).optional(),
  causationid: z.string().max(200).optional(),
  idempotencykey: z.string().max(300).optional(),
  /** The agent that is to take the event; the gateway fills it in from the triggers. */
  agent: z.string().max(64).optional(),
  /** What to do when the session is busy (see BusyMode). */
  busymode: z.string().max(20).optional(),
  /** JSON of a Principal; an extension attribute must be a string. */
  principal: z.string().max(4096).optional(),
});
export type EnvelopeAttributes = z.infer<typeof EnvelopeAttributes>;

/** A CloudEvent with its data as JSON text (`null` where it had none). */
export interface Envelope extends EnvelopeAttributes {
  readonly data: string;
}

/** Largest event the edge and the router take, in bytes of the structured JSON. */
export const MAX_EVENT_BYTES = 256 * 1024;
/** Largest message between Docket's own apps: a command that carries an event, as text within JSON. */
export const MAX_COMMAND_BYTES = 4 * MAX_EVENT_BYTES;

/**
 * Reads a structured CloudEvent of `limitBytes` at most. Unknown extensions are ignored, `data_base64` of JSON media types is decoded.
 * Throws Problem: `not_json`, `not_a_cloudevent`, `payload_too_large`.
 */
export function parseEnvelope(text: string, limitBytes = MAX_EVENT_BYTES): Envelope {
  assertSize(text, limitBytes);
  let raw: unknown;
  try {
    raw = parseLossless(text);
  } catch (error) {
    throw new Problem("not_json", `the event is not JSON: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
  return envelopeOf(raw);
}

/** Throws Problem `payload_too_large`. */
export function assertSize(text: string, limitBytes: number): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > limitBytes) throw new Problem("payload_too_large", `the event has ${String(bytes)} bytes; the limit is ${String(limitBytes)}`, { hint: "store the payload elsewhere and send a reference" });
}

/** The same for an already (losslessly) parsed value. Throws Problem `not_a_cloudevent`. */
export function envelopeOf(raw: unknown): Envelope {
  const parsed = EnvelopeAttributes.safeParse(raw);
  if (!parsed.success) {
    throw new Problem("not_a_cloudevent", `the event is not a CloudEvent 1.0: ${parsed.error.issues.map((i) => `${i.path.map(String).join(".") || "(whole)"}: ${i.message}`).join("; ")}`,
      { errors: zodErrors(parsed.error), hint: "send specversion 1.0, id, source, type and, unless an agent's trigger derives it, subject (the session id)" });
  }
  const value = raw as { data?: unknown; data_base64?: unknown };
  return { ...parsed.data, data: dataText(value) };
}

function dataText(value: { data?: unknown; data_base64?: unknown }): string {
  if (value.data !== undefined) return stringifyLossless(value.data);
  if (typeof value.data_base64 !== "string") return "null";
  const decoded = Buffer.from(value.data_base64, "base64").toString("utf8");
  try {
    return stringifyLossless(parseLossless(decoded));
  } catch {
    return JSON.stringify(decoded);
  }
}

/** The attributes without the data. */
export function attributesOf(envelope: Envelope): EnvelopeAttributes {
  const { data, ...attributes } = envelope;
  return attributes;
}

/** Serialises to structured JSON, data digits kept. */
export function serializeEnvelope(envelope: Envelope): string {
  const { data, ...attributes } = envelope;
  const head = JSON.stringify({ datacontenttype: "application/json", ...attributes });
  return `${head.slice(0, -1)},"data":${data}}`;
}

/** The principal that the envelope carries; `undefined` where it carries none or a broken one. */
export function principalOf(envelope: EnvelopeAttributes): Principal | undefined {
  if (envelope.principal === undefined) return undefined;
  try {
    const parsed = Principal.safeParse(JSON.parse(envelope.principal));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}
