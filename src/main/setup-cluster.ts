/**
 * Owns: the Job of k8s/overlays/dev: makes secrets (those that are there stay), then NATS streams, databases and tables. Ends with 0 when all
 * of it is there. Installations with a broker and a database of their own do not run it (docs/kubernetes.md).
 */
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { prepareStreams } from "../launcher/broker.js";
import { clusterApi, type ClusterApi } from "../launcher/cluster/api.js";
import { prepareDatabases } from "../launcher/cluster/databases.js";
import { clusterObjects, ClusterValues, makeClusterValues } from "../launcher/cluster/secrets.js";
import { LauncherError, messageOf } from "../launcher/errors.js";

/** Holds every value that was made; the other objects are derived from it. */
const VALUES = { name: "setup", key: "values.json" } as const;
const DEADLINE_MS = 180_000;

async function main(): Promise<void> {
  const { values: given } = parseArgs({ options: {
    namespace: { type: "string" }, "tools-namespace": { type: "string" }, nats: { type: "string" }, postgres: { type: "string" },
    "token-file": { type: "string", default: "/var/run/secrets/kubernetes.io/serviceaccount/token" },
  } });
  const places = { namespace: needed(given, "namespace"), toolsNamespace: needed(given, "tools-namespace"), postgres: needed(given, "postgres") };
  const api = clusterApi(serverUrl(), (await readFile(given["token-file"], "utf8")).trim());
  const values = await settledValues(api, places.namespace);
  let made = 0;
  const objects = clusterObjects(values, places);
  for (const object of objects) if (await api.create(object)) made += 1;
  say(`${String(objects.length)} secrets and key files, ${String(made)} of them new`);
  await prepareStreams({ url: needed(given, "nats"), token: values.brokerToken, owned: false, deadlineMs: DEADLINE_MS, dropConsumers: false });
  say("streams are there");
  await prepareDatabases({ server: places.postgres, adminPassword: values.postgresPassword, passwords: values.databasePasswords, deadlineMs: DEADLINE_MS });
  say("databases and tables are there");
}

/** What an earlier run settled, or new values. Of two runs at once both go on with the values of the first. */
async function settledValues(api: ClusterApi, namespace: string): Promise<ClusterValues> {
  const read = async (): Promise<ClusterValues | undefined> => {
    const text = (await api.secret(namespace, VALUES.name))?.[VALUES.key];
    return text === undefined ? undefined : ClusterValues.parse(JSON.parse(text));
  };
  const known = await read();
  if (known !== undefined) return known;
  await api.create({ kind: "Secret", namespace, name: VALUES.name, data: { [VALUES.key]: JSON.stringify(await makeClusterValues()) } });
  const settled = await read();
  if (settled === undefined) throw new LauncherError("CLUSTER_REFUSED", `Secret ${VALUES.name} in ${namespace} is gone again, or lacks ${VALUES.key}.`, "Delete it if you made it, and run the Job again.");
  return settled;
}

function needed(given: Readonly<Record<string, string | undefined>>, name: string): string {
  const value = given[name];
  if (value === undefined || value === "") throw new LauncherError("OPTION_INVALID", `--${name} is missing.`, "k8s/overlays/dev/infra/setup.yaml has all of them.");
  return value;
}

function serverUrl(): string {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (host === undefined || port === undefined) throw new LauncherError("OPTION_INVALID", "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set.", "This runs in a pod of a cluster: kubectl apply -k k8s/overlays/dev starts it.");
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function say(line: string): void { process.stdout.write(`${line}\n`); }

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof LauncherError ? error.render() : messageOf(error)}\n`);
  process.exitCode = 1;
});
