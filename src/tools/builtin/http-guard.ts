/**
 * Owns: whether and how a URL may be reached (server-side request forgery). Two gates: the URL itself, and every
 * address that the connection is made to. The second one sits inside the connection's own look-up, so what was
 * checked is what is connected to, whatever DNS says a moment later (rebinding).
 */
import { lookup as dnsLookup, type LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { Agent } from "undici";
import { ToolFailure } from "../../agent/tool-failure.js";
import { isLiteralAddress, isPublicAddress } from "./address.js";

export interface HttpLimits { readonly connectTimeoutMs: number; readonly idleTimeoutMs: number; readonly maxBodyBytes: number; readonly maxRedirects: number }

/** `host` (ports 80 and 443) or `host:port`; such hosts are reached wherever they are, also on loopback. */
export type AllowedHost = string;

export type Resolve = (host: string) => Promise<readonly LookupAddress[]>;

export const resolveByDns: Resolve = (host) => new Promise((resolve, reject) => {
  dnsLookup(host, { all: true, verbatim: true }, (error, addresses) => {
    if (error === null) resolve(addresses);
    else reject(error);
  });
});

const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** A URL that passed the first gate. */
export interface CheckedUrl { readonly url: URL; readonly host: string; readonly allowed: boolean }

/** Throws ToolFailure `permanent` with the reason. */
export function checkUrl(text: string, allowHosts: readonly AllowedHost[]): CheckedUrl {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refused(text, "it is not a URL");
  }
  const defaultPort = DEFAULT_PORTS[url.protocol];
  if (defaultPort === undefined) throw refused(text, `its scheme is ${url.protocol}, expected http: or https:`);
  if (url.username !== "" || url.password !== "") throw refused(text, "it carries user information");
  const host = url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "").toLowerCase();
  if (host === "") throw refused(text, "it has no host");
  const port = url.port === "" ? defaultPort : Number(url.port);
  const allowed = allowHosts.some((entry) => entry.toLowerCase() === `${host}:${String(port)}` || (entry.toLowerCase() === host && port === defaultPort));
  if (allowed) return { url, host, allowed };
  if (port !== 80 && port !== 443) throw refused(text, `its port is ${String(port)}, expected 80 or 443`);
  if (/(^|\.)localhost$/.test(host)) throw refused(text, "it names this machine");
  if (isLiteralAddress(host) && !isPublicAddress(host)) throw refused(text, `${host} is not a public address`);
  return { url, host, allowed };
}

/** A connection pool for one hop whose look-up lets public addresses through only. The caller destroys it. */
export function guardedAgent(target: CheckedUrl, limits: HttpLimits, resolve: Resolve): Agent {
  const lookup: LookupFunction = (host, options, callback) => {
    resolve(host).then((addresses) => {
      const inside = target.allowed ? undefined : addresses.find((found) => !isPublicAddress(found.address));
      const first = addresses[0];
      // One inside address refuses them all: which one is connected to is not ours to choose.
      if (inside !== undefined) callback(new BlockedAddress(`${host} resolves to ${inside.address}, which is not a public address`), "", 4);
      else if (first === undefined) callback(new Error(`${host} has no address`), "", 4);
      else if (options.all === true) callback(null, [...addresses]);
      else callback(null, first.address, first.family);
    }, (error: unknown) => { callback(error as NodeJS.ErrnoException, "", 4); });
  };
  return new Agent({
    connect: { lookup, timeout: limits.connectTimeoutMs }, headersTimeout: limits.idleTimeoutMs, bodyTimeout: limits.idleTimeoutMs,
    keepAliveTimeout: 1, maxHeaderSize: 16 * 1024, pipelining: 0,
  });
}

/** The look-up's own refusal, told apart from a failure of DNS. */
export class BlockedAddress extends Error {}

function refused(text: string, why: string): ToolFailure {
  return ToolFailure.permanent(`the URL ${JSON.stringify(text.slice(0, 200))} is refused: ${why}`);
}
