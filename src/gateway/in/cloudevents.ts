/**
 * Owns: reading CloudEvents from HTTP in structured, binary and batched mode. The `cloudevents` package reads the
 * binary mode's headers; bodies are read by our own lossless parser, because the package rounds large integers.
 */
import type { IncomingHttpHeaders } from "node:http";
import { HTTP } from "cloudevents";
import { envelopeOf, parseEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { Problem } from "../../contracts/problems.js";
import { parseBodyJson } from "./body.js";

export type EventMode = "structured" | "binary" | "batched" | "none";

/** Content mode by the HTTP binding's rules: media type first, then the presence of ce- headers. */
export function eventModeOf(headers: IncomingHttpHeaders): EventMode {
  const mediaType = (headers["content-type"] ?? "").trim().toLowerCase();
  if (mediaType.startsWith("application/cloudevents-batch")) return "batched";
  if (mediaType.startsWith("application/cloudevents")) return "structured";
  return Object.keys(headers).some((name) => name.startsWith("ce-")) ? "binary" : "none";
}

/** One structured event. Throws Problem. */
export const readStructured = parseEnvelope;

/** The items of a batch, unread: each is judged on its own. Throws Problem where the batch itself is no array. */
export function readBatch(text: string, limit: number): (() => Envelope)[] {
  const raw = parseBodyJson(text);
  if (!Array.isArray(raw)) throw new Problem("not_a_cloudevent", "a batch is a JSON array of CloudEvents", { hint: "send one event as application/cloudevents+json" });
  if (raw.length > limit) throw new Problem("payload_too_large", `the batch has ${raw.length} events; the limit is ${limit}`, { hint: "send smaller batches" });
  return raw.map((item: unknown) => () => envelopeOf(item));
}

/** An event in binary mode: attributes from ce- headers, the body is its data. Throws Problem. */
export function readBinary(headers: IncomingHttpHeaders, text: string): Envelope {
  const attributes = binaryAttributes(headers);
  const contentType = headers["content-type"];
  return { ...envelopeOf({ ...attributes, ...(contentType === undefined ? {} : { datacontenttype: contentType }) }), data: binaryData(contentType, text) };
}

function binaryAttributes(headers: IncomingHttpHeaders): Record<string, unknown> {
  const decoded: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith("ce-") && typeof value === "string") decoded[name] = percentDecoded(name, value);
  }
  let event: unknown;
  try {
    // Headers only: the package would parse the body with JSON.parse, which rounds.
    event = HTTP.toEvent({ headers: decoded, body: undefined });
  } catch (error) {
    throw new Problem("not_a_cloudevent", "the ce- headers are not a CloudEvent in binary mode", { cause: error, hint: "send ce-specversion, ce-id, ce-source and ce-type" });
  }
  // The package replaces a time that it cannot read by now, and fills in a missing version: what was sent is what is judged.
  const replaced = new Set(["data", "datacontenttype", "time", "specversion"]);
  const attributes = Object.entries(event as object).filter(([name, value]) => value !== undefined && !replaced.has(name));
  return { ...Object.fromEntries(attributes), specversion: decoded["ce-specversion"], ...(decoded["ce-time"] === undefined ? {} : { time: decoded["ce-time"] }) };
}

/** Header values are percent-encoded UTF-8 (HTTP binding 3.1.3.2). */
function percentDecoded(name: string, value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    throw new Problem("not_a_cloudevent", `the header ${name} has a broken percent escape`, { hint: "encode header values as the CloudEvents HTTP binding says (3.1.3.2)" });
  }
}

function binaryData(contentType: string | undefined, text: string): string {
  if (text === "") return "null";
  const mediaType = (contentType ?? "application/json").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (mediaType === "application/json" || mediaType.endsWith("+json")) {
    parseBodyJson(text);
    return text;
  }
  if (mediaType.startsWith("text/")) return JSON.stringify(text);
  throw new Problem("validation_failed", `data of type ${mediaType} is not taken`, { hint: "send JSON or text data, or a reference to the payload" });
}

