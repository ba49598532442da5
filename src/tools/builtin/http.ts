/**
 * Owns: `http_get` (reads, follows redirects) and `http_request` (has effects, never follows one). Both reach public
 * hosts only, see http-guard.ts. No proxy variable of the environment is used.
 */
import { request, type Dispatcher } from "undici";
import { z } from "zod";
import { defineTool } from "../../agent/define-tool.js";
import type { Tool, ToolContext } from "../../agent/definition.js";
import { ToolFailure } from "../../agent/tool-failure.js";
import { BlockedAddress, checkUrl, guardedAgent, resolveByDns, type AllowedHost, type HttpLimits, type Resolve } from "./http-guard.js";

export interface HttpSettings {
  readonly allowHosts: readonly AllowedHost[];
  readonly limits?: Partial<HttpLimits>;
  readonly resolve?: Resolve;
}

const LIMITS: HttpLimits = { connectTimeoutMs: 5_000, idleTimeoutMs: 10_000, maxBodyBytes: 1024 * 1024, maxRedirects: 5 };
const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Failures before a byte of the request was sent. */
const NOT_SENT = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS_CERT_ALTNAME_INVALID|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|CERT_HAS_EXPIRED|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/;

const Url = z.string().min(1).max(2048).describe("Absolute http or https URL of a public host.");
// What stands here can be sent; credentials, cookies and routing headers cannot.
const header = z.string().max(1000).regex(/^[\x20-\x7e]*$/, "expected printable ASCII").optional();
const Headers = z.strictObject({ "accept": header, "accept-language": header, "content-type": header, "if-match": header, "if-none-match": header, "prefer": header }).optional();

interface Answer { status: number; contentType: string; location?: string; body: string; truncated: boolean }
interface Hop { readonly url: string; readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"; readonly headers: Record<string, string>; readonly body?: string }

export function httpTools(settings: HttpSettings): Tool[] {
  const limits = { ...LIMITS, ...settings.limits };
  const resolve = settings.resolve ?? resolveByDns;
  const send = (hop: Hop, signal: AbortSignal): Promise<Answer> => sendOnce(hop, signal, { allowHosts: settings.allowHosts, limits, resolve });
  return [
    defineTool({
      name: "http_get", title: "Read a URL", effects: "none",
      description: "Reads a public http(s) URL and returns status, content type and text. Follows up to five redirects. Private and internal hosts are refused.",
      input: z.object({ url: Url, headers: Headers }),
      run: async ({ url, headers }, context) => {
        const answer = await followRedirects({ url, method: "GET", headers: sendable(headers) }, limits.maxRedirects, (hop) => send(hop, context.signal).catch((error: unknown) => { throw readFailure(error); }));
        if (answer.status === 429 || answer.status === 503) throw ToolFailure.transient(`${url} answered ${String(answer.status)}`);
        return answer;
      },
    }),
    defineTool({
      name: "http_request", title: "Send an HTTP request", effects: "once", risk: "high",
      description: "Sends a POST, PUT, PATCH or DELETE to a public http(s) URL and returns status, content type and text. Redirects are reported, not followed.",
      input: z.object({ method: z.enum(["POST", "PUT", "PATCH", "DELETE"]), url: Url, headers: Headers, body: z.string().max(100_000).optional() }),
      run: async ({ method, url, headers, body }, context: ToolContext) => {
        const hop: Hop = { url, method, headers: { ...sendable(headers), "idempotency-key": context.idempotencyKey }, ...(body === undefined ? {} : { body }) };
        return send(hop, context.signal).catch((error: unknown) => { throw effectFailure(error); });
      },
    }),
  ];
}

/** Each hop goes through both gates again. */
async function followRedirects(first: Hop, maxRedirects: number, send: (hop: Hop) => Promise<Answer>): Promise<Answer & { url: string }> {
  let { url } = first;
  for (let hops = 0; hops <= maxRedirects; hops += 1) {
    const answer = await send({ ...first, url });
    if (!REDIRECTS.has(answer.status) || answer.location === undefined) return { ...answer, url };
    url = new URL(answer.location, url).href;
  }
  throw ToolFailure.permanent(`${first.url} redirects more than ${String(maxRedirects)} times`);
}

async function sendOnce(hop: Hop, signal: AbortSignal, guard: { allowHosts: readonly AllowedHost[]; limits: HttpLimits; resolve: Resolve }): Promise<Answer> {
  const target = checkUrl(hop.url, guard.allowHosts);
  const agent = guardedAgent(target, guard.limits, guard.resolve);
  try {
    const response = await request(target.url, {
      method: hop.method, dispatcher: agent, signal, ...(hop.body === undefined ? {} : { body: hop.body }),
      headers: { "user-agent": "docket", "accept-encoding": "identity", ...hop.headers },
    });
    return await readAnswer(response, guard.limits.maxBodyBytes);
  } finally {
    await agent.destroy();
  }
}

async function readAnswer(response: Dispatcher.ResponseData, maxBytes: number): Promise<Answer> {
  const contentType = single(response.headers["content-type"]) ?? "";
  const location = single(response.headers["location"]);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  const body = Buffer.concat(chunks).subarray(0, maxBytes);
  const text = /^(text\/|application\/([\w.+-]*\+)?(json|xml|yaml|x-www-form-urlencoded|javascript))|^$/i.test(contentType) ? body.toString("utf8") : `[${String(body.length)} bytes of ${contentType}]`;
  return { status: response.statusCode, contentType, ...(location === undefined ? {} : { location }), body: text, truncated: bytes > maxBytes };
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

function sendable(headers: Record<string, string | undefined> | undefined): Record<string, string> {
  return Object.fromEntries(Object.entries(headers ?? {}).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function readFailure(error: unknown): ToolFailure {
  if (ToolFailure.is(error)) return error;
  const { message, blocked } = explain(error);
  return blocked ? ToolFailure.permanent(message, { cause: error }) : ToolFailure.transient(message, { cause: error });
}

/** Once bytes may have left, nobody knows what the other side did with them (I6). */
function effectFailure(error: unknown): ToolFailure {
  if (ToolFailure.is(error)) return error;
  const { message, blocked, sent } = explain(error);
  if (blocked) return ToolFailure.permanent(message, { cause: error });
  return sent ? ToolFailure.unknown(message, { cause: error }) : ToolFailure.notStarted(message, { cause: error });
}

function explain(error: unknown): { message: string; blocked: boolean; sent: boolean } {
  const causes = error instanceof AggregateError ? [error, ...(error.errors as unknown[])] : [error, error instanceof Error ? error.cause : undefined];
  const blocked = causes.find((cause) => cause instanceof BlockedAddress);
  if (blocked instanceof BlockedAddress) return { message: blocked.message, blocked: true, sent: false };
  const code = causes.map((cause) => (cause as { code?: unknown } | undefined)?.code).find((found) => typeof found === "string");
  return { message: `the request failed: ${error instanceof Error ? error.message : String(error)}`, blocked: false, sent: !NOT_SENT.test(String(code)) };
}
