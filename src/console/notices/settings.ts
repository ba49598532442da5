/**
 * Owns: which notices go where, as data (docs/notices.md): channels, routes, and the people behind Slack users and one-time links. Secrets are named in the
 * file and come from elsewhere; a name without a secret ends the boot, with all other faults.
 */
import { z } from "zod";
import { DEFAULT_TENANT, Tenant } from "../../contracts/ids.js";
import { NoticeEvent } from "../../contracts/notices.js";
import { didYouMean } from "../../contracts/suggest.js";
import { Risk } from "../../contracts/tools.js";
import { readSettings, settingsFaulty, type SettingsFault, type SettingsFile } from "../../platform/settings-file.js";

const ChannelName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "expected lower-case letters, digits and dashes, 40 at most");
const SecretName = z.string().regex(/^[A-Z][A-Z0-9_]{0,59}$/, "expected the name of a secret: capital letters, digits and underscores, without DOCKET_NOTICE_SECRET_");
const Role = z.string().min(1).max(100);
const Glob = z.string().min(1).max(200);
const PersonId = z.string().min(1).max(200);
/** `summary`: neither arguments nor what model and sender wrote; such a card has no buttons. */
const show = z.enum(["all", "summary"]).default("all");

const ChannelFile = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("webhook"), url: z.url().optional(), urlFrom: SecretName.optional(), signingSecret: SecretName, show, /** Whose one-time links the card carries. */ links: z.array(PersonId).max(20).default([]) })
    .refine((channel) => (channel.url === undefined) !== (channel.urlFrom === undefined), "give either url, or urlFrom where the address is a secret"),
  z.strictObject({ kind: z.literal("slack"), urlFrom: SecretName, show, /** Which cards may be decided on in Slack. */ buttons: z.enum(["none", "below-high", "all"]).default("none") }),
  z.strictObject({ kind: z.literal("discord"), urlFrom: SecretName, show }),
]);

const Route = z.strictObject({
  match: z.strictObject({
    tools: z.array(Glob).min(1).optional(), agents: z.array(Glob).min(1).optional(), risk: z.array(Risk).min(1).optional(), kinds: z.array(z.enum(["tool_call", "escalation"])).min(1).optional(),
    /** Roles or groups that may decide; of an escalation those who come in by it. */
    approvers: z.array(Role).min(1).optional(),
    tenant: Tenant.default(DEFAULT_TENANT),
  }).prefault({}),
  on: z.array(NoticeEvent.exclude(["settled", "locked"])).min(1).default(["opened", "reminded", "escalated"]),
  to: z.array(ChannelName).min(1),
});
export type Route = z.infer<typeof Route>;

/** What a person may do is that of an API key, for as long as the key is valid, or what is written here. */
const Person = z.strictObject({
  principal: PersonId, tenant: Tenant.default(DEFAULT_TENANT), roles: z.array(Role).max(50).optional(), groups: z.array(Role).max(50).optional(), key: z.string().regex(/^[0-9a-f]{4,40}$/, "expected the id of an API key").optional(),
  slack: z.string().regex(/^[UW][A-Z0-9]{2,30}$/, "expected a Slack member id, such as U012AB3CD").optional(),
}).refine((person) => (person.key === undefined) !== (person.roles === undefined), "give either the roles, or the id of the person's API key")
  .refine((person) => person.key === undefined || person.groups === undefined, "groups go with roles; a key has its own");
export type Person = z.infer<typeof Person>;

const Slack = z.strictObject({ signingSecret: SecretName, team: z.string().regex(/^[TE][A-Z0-9]{2,30}$/, "expected a Slack workspace id, such as T012AB3CD") });
const Links = z.strictObject({
  /** Whether the person must be signed in as well: `high-risk` asks for it only there. */
  signIn: z.enum(["always", "high-risk", "never"]).default("always"),
  lastHours: z.number().positive().max(168).default(24),
});

const NoticesFile = z.strictObject({
  version: z.literal(1), channels: z.record(ChannelName, ChannelFile), routes: z.array(Route).min(1).max(200), people: z.array(Person).max(1_000).default([]), slack: Slack.optional(), links: Links.prefault({}),
});

export type Channel =
  | { readonly name: string; readonly kind: "webhook"; readonly url: string; readonly secrets: readonly string[]; readonly show: "all" | "summary"; readonly links: readonly string[] }
  | { readonly name: string; readonly kind: "slack"; readonly url: string; readonly show: "all" | "summary"; readonly buttons: "none" | "below-high" | "all" }
  | { readonly name: string; readonly kind: "discord"; readonly url: string; readonly show: "all" | "summary" };

/** The file with its secrets. Never logged, never shown. */
export interface NoticeSettings {
  readonly channels: readonly Channel[];
  readonly routes: readonly Route[];
  readonly people: readonly Person[];
  readonly slack: { readonly secrets: readonly string[]; readonly team: string } | undefined;
  readonly links: z.infer<typeof Links>;
  /** Address of the console as people reach it. */
  readonly consoleUrl: string;
  /** Where answers to Slack callbacks may go; nowhere else, whatever a callback says. */
  readonly slackOrigins: readonly string[];
}

/** Reads the file's text. `secret` finds a secret by its name. Throws Problem `config_invalid` with every fault. */
export function readNotices(text: string, { from, consoleUrl, secret }: { readonly from: string; readonly consoleUrl: string; readonly secret: (name: string) => string | undefined }): NoticeSettings {
  const about: SettingsFile = { from, purpose: "which notices go where", hint: "docs/notices.md has an example" };
  const file = readSettings(NoticesFile, text, about);
  const faults: SettingsFault[] = [];
  const secretAt = (path: string, name: string): string => {
    const value = secret(name)?.trim();
    if (value === undefined || value === "") faults.push({ path, message: `DOCKET_NOTICE_SECRET_${name} is not set, nor DOCKET_NOTICE_SECRET_${name}_FILE` });
    return value ?? "";
  };
  const channels = Object.entries(file.channels).map(([name, channel]): Channel => {
    const at = `channels.${name}`;
    const url = channel.kind === "webhook" && channel.url !== undefined ? channel.url : secretAt(`${at}.urlFrom`, channel.urlFrom ?? "");
    if (url !== "" && !isSafeUrl(url)) faults.push({ path: at, message: "its address is no https address (http only on this machine)" });
    if (channel.kind !== "webhook") return { ...channel, name, url };
    const secrets = wordsOf(secretAt(`${at}.signingSecret`, channel.signingSecret));
    if (secrets.some((one) => !isWebhookSecret(one))) faults.push({ path: `${at}.signingSecret`, message: "expected whsec_ and 24 to 64 bytes in base64, such as `openssl rand -base64 32` gives" });
    return { name, kind: "webhook", url, secrets, show: channel.show, links: channel.links };
  });
  const slack = file.slack === undefined ? undefined : { secrets: wordsOf(secretAt("slack.signingSecret", file.slack.signingSecret)), team: file.slack.team };
  faults.push(...faultsBetween(file));
  if (faults.length > 0) throw settingsFaulty(about, faults);
  return { channels, routes: file.routes, people: file.people, slack, links: file.links, consoleUrl, slackOrigins: ["https://hooks.slack.com"] };
}

/** What fits by itself and not together. */
function faultsBetween({ channels, routes, people, slack }: z.infer<typeof NoticesFile>): SettingsFault[] {
  const names = Object.keys(channels);
  const faults: SettingsFault[] = routes.flatMap((route, index) => route.to.filter((name) => !names.includes(name)).map((name) => ({ path: `routes.${String(index)}.to`, message: `no channel is named ${name}${didYouMean(name, names)}` })));
  for (const [name, channel] of Object.entries(channels)) {
    if (channel.kind === "slack" && channel.buttons !== "none" && slack === undefined) faults.push({ path: `channels.${name}.buttons`, message: "buttons need the section slack: what comes back is believed by its signature only" });
    if (channel.kind !== "webhook") continue;
    for (const id of channel.links) if (!people.some((person) => person.principal === id)) faults.push({ path: `channels.${name}.links`, message: `nobody in people is ${id}` });
  }
  for (const [what, ids] of [["principal", people.map((person) => `${person.tenant} ${person.principal}`)], ["slack", people.flatMap((person) => person.slack ?? [])]] as const) {
    for (const id of new Set(ids.filter((one, index) => ids.indexOf(one) !== index))) faults.push({ path: "people", message: `${what} ${id} is there twice` });
  }
  return faults;
}

/** Several secrets while one is rotated. */
function wordsOf(text: string): string[] { return text.split(/[\s,]+/).filter((word) => word !== ""); }

function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return protocol === "https:" || (protocol === "http:" && /^(127\.0\.0\.1|\[::1\]|localhost)$/.test(hostname));
}

function isWebhookSecret(text: string): boolean {
  const [, base64] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const { length } = Buffer.from(base64 ?? "", "base64");
  return length >= 24 && length <= 64;
}
