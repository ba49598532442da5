/**
 * Owns: what a person of the identity provider may do here: claims to roles and to approver groups, as data (docs/identity.md).
 *
 * - Only what the file names is given. Nobody gets a role because a claim happens to be called like one: groups cannot be named as
 *   the four roles are.
 * - A group counts as a role of that name where a policy says who may decide (`approvers.roles`); it travels in the signed decision,
 *   and the session checks it there (I4).
 */
import { z } from "zod";
import type { Principal } from "../../contracts/cloudevent.js";
import { DEFAULT_TENANT, sha256Hex, Tenant } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import { readSettings } from "../../platform/settings-file.js";

const ROLES = ["viewer", "operator", "approver", "admin"] as const;
const Rule = z.strictObject({
  /** A claim's name, or the way to one within others: `[realm_access, roles]`. */
  claim: z.union([z.string().min(1).max(200), z.array(z.string().min(1).max(200)).min(1).max(8)]),
  /** The claim is this value, or a list that has it. */
  is: z.union([z.string().min(1).max(500), z.number(), z.boolean()]),
});
const Rules = z.array(Rule).min(1).max(200);
const Group = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, "expected letters, digits, dots, dashes and underscores, 100 at most")
  .refine((name) => !(ROLES as readonly string[]).includes(name), "a group must not be called like a role; use `roles` to give roles");

export const AccessMap = z.strictObject({
  version: z.literal(1),
  tenant: Tenant.default(DEFAULT_TENANT),
  /** `sub`: issuer and subject, which never change. `email`: only where the provider says that it is verified; then one person has one name with key and with sign-on. */
  principal: z.enum(["sub", "email"]).default("sub"),
  roles: z.strictObject({ viewer: Rules.optional(), operator: Rules.optional(), approver: Rules.optional(), admin: Rules.optional() }),
  groups: z.record(Group, Rules).default({}),
});
export type AccessMap = z.infer<typeof AccessMap>;
export type Claims = Readonly<Record<string, unknown>>;

/** Reads the file's text. Throws Problem `config_invalid` with every fault. */
export function readAccessMap(text: string, from: string): AccessMap {
  return readSettings(AccessMap, text, { from, purpose: "who may do what", hint: "docs/identity.md has an example" });
}

/** Who the claims stand for. No roles: nobody here. Throws Problem `no_role` where the map names people by an e-mail address that is not verified. */
export function principalFrom(map: AccessMap, claims: Claims): Principal {
  const roles = ROLES.filter((role) => fits(map.roles[role], claims));
  const groups = Object.keys(map.groups).filter((group) => fits(map.groups[group], claims));
  return { id: idOf(map, claims), class: "person", roles: roles.length === 0 ? [] : [...roles, ...groups] };
}

/** Only what the map asks for, and what people are shown by: nothing else of a person is kept. */
export function claimsKept(map: AccessMap, claims: Claims): Claims {
  const asked = [...ROLES.flatMap((role) => map.roles[role] ?? []), ...Object.values(map.groups).flat()].map(({ claim }) => (typeof claim === "string" ? claim : claim[0] ?? ""));
  const names = new Set(["iss", "sub", "name", "preferred_username", "email", "email_verified", ...asked]);
  return Object.fromEntries(Object.entries(claims).filter(([name]) => names.has(name)));
}

function idOf(map: AccessMap, claims: Claims): string {
  const { iss, sub, email, email_verified: verified } = claims;
  if (map.principal === "email") {
    if (typeof email !== "string" || email === "" || email.length > 200 || verified !== true) throw new Problem("no_role", "people are known here by their verified e-mail address, and the identity provider gave none", { hint: "verify the address there, or set `principal: sub`" });
    return email.toLowerCase();
  }
  const whole = `${String(iss)}#${String(sub)}`;
  return whole.length <= 200 ? whole : `oidc:${sha256Hex(whole)}`;
}

function fits(rules: readonly z.infer<typeof Rule>[] | undefined, claims: Claims): boolean {
  return rules?.some(({ claim, is }) => {
    const value = typeof claim === "string" ? own(claims, claim) : claim.reduce<unknown>(own, claims);
    return Array.isArray(value) ? value.includes(is) : value === is;
  }) === true;
}

function own(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
