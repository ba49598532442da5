/** Owns: who stands behind a Slack user or a link, as a caller of the API. Asked anew each time: a key that was revoked, or a person who was taken out of the file, is nobody at once. */
import type { Authenticated } from "../../platform/apikeys.js";
import type { Authenticator } from "../ports.js";
import type { NoticeSettings, Person } from "./settings.js";

type Keys = Pick<Authenticator, "recall">;

export function personOf(settings: NoticeSettings, keys: Keys, tenant: string, principalId: string): Authenticated | undefined {
  return callerOf(settings.people.find((person) => person.tenant === tenant && person.principal === principalId), keys, "link");
}

export function slackPerson(settings: NoticeSettings, keys: Keys, userId: string): Authenticated | undefined {
  return callerOf(settings.people.find((person) => person.slack === userId), keys, `slack:${userId}`);
}

function callerOf(person: Person | undefined, keys: Keys, by: string): Authenticated | undefined {
  if (person === undefined) return undefined;
  const { principal, tenant, roles, groups, key } = person;
  if (key === undefined) return { keyId: by, tenant, principal: { id: principal, class: "person", roles: roles ?? [], ...(groups === undefined ? {} : { groups }) }, scopes: ["console:read"] };
  const caller = keys.recall(key);
  // A key of somebody else, or of another tenant, is a mistake in the file.
  return caller?.principal.id === principal && caller.tenant === tenant ? caller : undefined;
}
