/** Owns: a person of the identity provider as a caller of the API. The map is asked anew for each request, so that a changed file takes rights away at once. */
import { sha256Hex } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { principalFrom, type AccessMap, type Claims } from "./access-map.js";

/** Undefined for somebody without any role here. */
export function personCaller(map: AccessMap, claims: Claims): Authenticated | undefined {
  try {
    const principal = principalFrom(map, claims);
    return principal.roles.length === 0 ? undefined : { keyId: personKey(claims), tenant: map.tenant, principal, scopes: ["*"] };
  } catch (error) {
    if (error instanceof Problem) return undefined;
    throw error;
  }
}

/** Stands in the audit where a key's id stands for others. */
export function personKey({ iss, sub }: Claims): string { return `oidc:${sha256Hex(`${String(iss)}\n${String(sub)}`).slice(0, 16)}`; }
