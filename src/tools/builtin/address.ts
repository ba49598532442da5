/**
 * Owns: which network addresses a tool may reach: public unicast, nothing else. Loopback above all: the sidecar with its
 * state and publish API listens there.
 */
import ipaddr from "ipaddr.js";

/** Public addresses by their range that belong to a cloud's inside: Azure's wire server, which hands out credentials. */
const INSIDE_THE_CLOUD = new Set(["168.63.129.16"]);

/** Whether a literal address (v4, or v6 without brackets) is public unicast. Anything unparsable is not. */
export function isPublicAddress(literal: string): boolean {
  if (!ipaddr.isValid(literal)) return false;
  // `process` turns ::ffff:a.b.c.d into a.b.c.d, so that a mapped loopback is a loopback.
  const address = ipaddr.process(literal);
  if (INSIDE_THE_CLOUD.has(address.toString()) || address.range() !== "unicast") return false;
  // Global unicast is 2000::/3; the rest (site-local, v4-compatible, unassigned) has no business here.
  return address.kind() === "ipv4" || address.match(ipaddr.parse("2000::"), 3);
}

export function isLiteralAddress(host: string): boolean {
  return ipaddr.isValid(host);
}
