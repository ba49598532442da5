/**
 * Owns: what k8s/overlays/dev keeps in Secrets and ConfigMaps, and nowhere else: keys, tokens, passwords. All of it is made once, kept
 * as one document, and every object is derived from that document, so that a setup which was cut off goes on where it stopped.
 */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { APPS, STATE_STORES, type AppId } from "../../contracts/channels.js";
import { DEFAULT_TENANT } from "../../contracts/ids.js";
import { createApiKey } from "../../platform/apikeys.js";
import { ensureDevKeys, SIGNING_APPS } from "../../platform/keys.js";
import { randomToken } from "../secrets.js";

const text = z.string().min(1);
const perApp = z.object({ gateway: text, sessions: text, tools: text, console: text });

/** The document. Its shape is stored in clusters: only add to it, with a default. */
export const ClusterValues = z.object({
  signing: z.object({ sessions: text, console: text, tools: text }),
  trust: text,
  apiKeys: text,
  apiKey: text,
  actorKey: text,
  brokerToken: text,
  postgresPassword: text,
  databasePasswords: perApp,
  daprApiTokens: perApp,
  appApiTokens: perApp,
});
export type ClusterValues = z.infer<typeof ClusterValues>;

/** A Secret or ConfigMap to be made where it is missing. */
export interface ClusterObject {
  readonly kind: "Secret" | "ConfigMap";
  readonly namespace: string;
  readonly name: string;
  readonly data: Readonly<Record<string, string>>;
}

export interface ClusterPlaces {
  readonly namespace: string;
  readonly toolsNamespace: string;
  /** `host:port` of PostgreSQL. */
  readonly postgres: string;
}

/** Makes every value anew. */
export async function makeClusterValues(random: () => string = randomToken): Promise<ClusterValues> {
  const dir = await mkdtemp(join(tmpdir(), "docket-keys-"));
  try {
    await ensureDevKeys(dir);
    const [sessions, console, tools] = await Promise.all(SIGNING_APPS.map((app) => readFile(join(dir, `${app}.private.jwk.json`), "utf8")));
    // Not the development key: an app that listens beyond loopback does not take that one.
    const { key, record } = createApiKey({ tenant: DEFAULT_TENANT, principalId: "operator", class: "person", roles: ["viewer", "operator", "approver", "admin"], scopes: ["*"] });
    const tokens = (): Record<AppId, string> => Object.fromEntries(APPS.map((app) => [app, random()])) as Record<AppId, string>;
    return ClusterValues.parse({
      signing: { sessions, console, tools }, trust: await readFile(join(dir, "trust.jwks.json"), "utf8"), apiKeys: JSON.stringify({ keys: [record] }), apiKey: key,
      // NATS reads a variable as a piece of its configuration: one that begins with "-", or with digits and "-", is a number or date to it, and it does not start.
      actorKey: random(), brokerToken: `nats_${random()}`, postgresPassword: random(),
      databasePasswords: tokens(), daprApiTokens: tokens(), appApiTokens: tokens(),
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Each app's own database, and the role that alone may connect to it. */
export function databaseOf(app: AppId): string { return `docket_${app}`; }

/** Everything that the manifests refer to by name. */
export function clusterObjects(values: ClusterValues, { namespace, toolsNamespace, postgres }: ClusterPlaces): ClusterObject[] {
  const namespaceOf = (app: AppId): string => (app === "tools" ? toolsNamespace : namespace);
  const secret = (at: string, name: string, data: Record<string, string>): ClusterObject => ({ kind: "Secret", namespace: at, name, data });
  const connection = (app: AppId): Record<string, string> => ({ connectionString: `postgres://${databaseOf(app)}:${values.databasePasswords[app]}@${postgres}/${databaseOf(app)}?sslmode=disable` });
  return [
    ...[namespace, toolsNamespace].flatMap((at): ClusterObject[] => [
      { kind: "ConfigMap", namespace: at, name: "trust", data: { "trust.jwks.json": values.trust } },
      secret(at, "broker", { token: values.brokerToken }),
    ]),
    ...APPS.flatMap((app) => [
      secret(namespaceOf(app), `${app}-dapr-api-token`, { token: values.daprApiTokens[app] }),
      secret(namespaceOf(app), `${app}-app-api-token`, { token: values.appApiTokens[app] }),
    ]),
    ...SIGNING_APPS.map((app) => secret(namespaceOf(app), `signing-${app}`, { [`${app}.private.jwk.json`]: values.signing[app] })),
    secret(namespace, STATE_STORES.sessions, connection("sessions")),
    secret(namespace, STATE_STORES.inbox, connection("gateway")),
    secret(toolsNamespace, STATE_STORES.tools, connection("tools")),
    secret(namespace, "console-database", connection("console")),
    secret(namespace, "actor-key", { key: values.actorKey }),
    secret(namespace, "api-keys", { "api-keys.json": values.apiKeys }),
    // For the person who tries it out; no pod refers to it.
    secret(namespace, "api-key", { key: values.apiKey }),
    secret(namespace, "postgres", { password: values.postgresPassword }),
  ];
}
