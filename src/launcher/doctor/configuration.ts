/**
 * Owns: the doctor's checks of run file and component files against src/contracts: every channel and store is there, loaded by
 * exactly the apps that need it, may carry exactly what DESIGN 2 allows, and has its inbound retry policy.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { APPS, CHANNELS, DEAD_LETTER_TOPIC, STATE_STORES, type AppId, type Channel } from "../../contracts/channels.js";
import { readComponents, type ComponentFile } from "../components.js";
import { externalsOf, isThere, type External } from "../externals.js";
import type { ProfileName } from "../profiles.js";
import { readRunFile } from "../run-file.js";
import { brokerProblems } from "./broker-rules.js";
import { fail, ok, type CheckTask, type Finding } from "./check.js";

const STORE_OWNERS: Record<keyof typeof STATE_STORES, AppId> = { sessions: "sessions", inbox: "gateway", tools: "tools" };

/** The checks of the files of one profile. */
export function configurationChecks(root: string, profile: ProfileName, runFile: string): CheckTask[] {
  const resources = join(root, "components", profile);
  return [
    { name: "dapr.yaml", run: () => checkRunFile(runFile) },
    { name: `components/${profile}`, run: () => summarize(componentProblems(readComponents(resources)), "every channel and store, with its scopes") },
    { name: "inbound retries", run: () => summarize(resiliencyProblems(resources), "every subscribed channel is retried without limit") },
    ...externalsOf(profile, process.env).map((external) => ({ name: external.name, run: () => checkExternal(external) })),
  ];
}

/** What is wrong with a profile's components; empty when nothing is. */
export function componentProblems(components: readonly ComponentFile[]): string[] {
  const byName = new Map(components.map((component) => [component.name, component]));
  const channels = Object.values<Channel>(CHANNELS).flatMap((channel) => channelProblems(channel, byName.get(channel.component)));
  const stores = (Object.keys(STATE_STORES) as (keyof typeof STATE_STORES)[]).flatMap((store) => storeProblems(STATE_STORES[store], STORE_OWNERS[store], byName.get(STATE_STORES[store])));
  return [...channels, ...stores];
}

function channelProblems(channel: Channel, component: ComponentFile | undefined): string[] {
  const name = channel.component;
  if (!component) return [`no pub/sub component "${name}"`];
  const users = APPS.filter((app) => channel.publishers.includes(app) || channel.subscribers.includes(app));
  const problems = sameSet(component.scopes, users) ? [] : [`${name}: scopes are [${component.scopes.join(", ")}], expected [${users.join(", ")}]`];
  for (const app of users) {
    const publishes = [...(channel.publishers.includes(app) ? [channel.topic] : []), ...(channel.subscribers.includes(app) ? [DEAD_LETTER_TOPIC] : [])];
    const subscribes = channel.subscribers.includes(app) ? [channel.topic] : [];
    problems.push(...scopeProblems(component, "publishingScopes", app, publishes), ...scopeProblems(component, "subscriptionScopes", app, subscribes));
  }
  problems.push(...brokerProblems(channel, component));
  return problems;
}

/** An app that a scope list leaves out may use any topic, so each app must be in it. */
function scopeProblems(component: ComponentFile, key: string, app: AppId, expected: readonly string[]): string[] {
  const entry = (component.values[key] ?? "").split(";").find((part) => part.startsWith(`${app}=`));
  if (entry === undefined) return [`${component.name}: ${key} leaves out "${app}", which may then use any topic`];
  const topics = entry.slice(app.length + 1).split(",").filter(Boolean);
  return sameSet(topics, [...new Set(expected)]) ? [] : [`${component.name}: ${key} gives ${app} [${topics.join(", ")}], expected [${expected.join(", ")}]`];
}

function storeProblems(name: string, owner: AppId, component: ComponentFile | undefined): string[] {
  if (!component) return [`no state component "${name}"`];
  const problems = sameSet(component.scopes, [owner]) ? [] : [`${name}: scopes are [${component.scopes.join(", ")}], expected [${owner}] alone`];
  if (component.values["keyPrefix"] !== "none") problems.push(`${name}: keyPrefix must be "none", or renaming an app loses its keys`);
  if (name === STATE_STORES.sessions && component.values["actorStateStore"] !== "true") problems.push(`${name}: actorStateStore must be "true", or no actor is hosted`);
  if (component.type === "state.postgresql" && component.version !== "v2") problems.push(`${name}: PostgreSQL v${component.version.replace("v", "")} keeps values as JSONB, which changes them; version must be v2`);
  if (component.type === "state.redis") problems.push(`${name}: Redis neither rolls back nor honours create-only writes: refused (DESIGN 3)`);
  return problems;
}

const resiliencySchema = z.object({
  kind: z.literal("Resiliency"),
  spec: z.object({
    policies: z.object({ retries: z.record(z.string(), z.object({ policy: z.string(), maxRetries: z.number().optional() })) }),
    targets: z.object({ components: z.record(z.string(), z.object({ inbound: z.object({ retry: z.string() }).optional() })) }),
  }),
});

/** Channels whose failures would become dead letters at once, or after a while. */
function resiliencyProblems(resources: string): string[] {
  const documents = readdirSync(resources).filter((file) => /\.ya?ml$/.test(file)).flatMap((file) => parseAllDocuments(readFileSync(join(resources, file), "utf8")));
  const policies = documents.map((document) => resiliencySchema.safeParse(document.toJS())).flatMap((parsed) => (parsed.success ? [parsed.data.spec] : []));
  return Object.values<Channel>(CHANNELS).filter((channel) => channel.delivery === "competing").flatMap(({ component }) => {
    const spec = policies.find((policy) => policy.targets.components[component]?.inbound);
    const retry = spec?.policies.retries[spec.targets.components[component]?.inbound?.retry ?? ""];
    if (!retry) return [`${component}: no inbound retry policy: the first failure is a dead letter`];
    if ((retry.maxRetries ?? -1) >= 0) return [`${component}: inbound retries end after ${retry.maxRetries ?? 0}: an outage turns good events into dead letters`];
    return retry.policy === "exponential" ? [`${component}: an exponential policy ends after 15 hidden minutes; use constant`] : [];
  });
}

function checkRunFile(path: string): Finding {
  if (!existsSync(path)) return fail(`${path} is missing`, "Start from the repository's root folder.");
  const { apps } = readRunFile(path);
  const missing = APPS.filter((id) => !apps.some((app) => app.appId === id));
  const lost = apps.filter((app) => app.configFile === undefined || !existsSync(app.configFile)).map((app) => app.appId);
  if (missing.length > 0) return fail(`${path} lacks ${missing.join(", ")}`, "Add the missing apps.");
  if (lost.length > 0) return fail(`${path}: configFilePath of ${lost.join(", ")} is missing`, "Point it at components/configuration/<app>.yaml.");
  return ok(`${apps.length} apps`);
}

async function checkExternal(external: External): Promise<Finding> {
  const where = external.servers.join(" or ");
  if (external.servers.length === 0) return ok("its address is one that only the sidecar can try");
  return (await isThere(external)) ? ok(`${external.label} answers at ${where}`) : fail(`nothing that speaks ${external.label}'s protocol answers at ${where}`, `${external.fix}.`);
}

function summarize(problems: readonly string[], good: string): Finding {
  return problems.length === 0 ? ok(good) : fail(problems.join("\n"), "Correct these component files; src/contracts/channels.ts says who may do what.");
}

function sameSet(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((item) => right.includes(item));
}
