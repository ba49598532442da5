/** The Job of the dev overlay on a real API server, with the rights of its ServiceAccount, a real NATS and a real PostgreSQL. */
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS } from "../../src/contracts/channels.js";
import { createApiKeys, readApiKeyFile } from "../../src/platform/apikeys.js";
import { loadSigner, loadTrust } from "../../src/platform/keys.js";
import { locateNats } from "../../src/launcher/runtime/locate.js";
import { REPO_ROOT } from "../support/cluster.js";
import { referredSecrets } from "../support/k8s/checks.js";
import { freePort, installCrds, startCluster, type TestCluster } from "../support/k8s/control-plane.js";
import { mainContainer, NAMESPACE, parseManifests, TOOLS_NAMESPACE, workloadsIn } from "../support/k8s/manifests.js";
import { hasPostgres, startPostgres } from "../support/tools/postgres.js";

const run = promisify(execFile);

// A server that somebody lends is not the place for roles and databases of fixed names.
const skipped = !hasPostgres() || process.env["DOCKET_TEST_POSTGRES"] !== undefined;

describe.skipIf(skipped)("the setup Job", () => {
  let cluster: TestCluster;
  let postgres: Awaited<ReturnType<typeof startPostgres>>;
  let nats: string;
  let objects: ReturnType<typeof parseManifests>;

  beforeAll(async () => {
    cluster = await startCluster();
    await installCrds(cluster);
    postgres = await startPostgres();
    const owner = new pg.Client(postgres.address);
    await owner.connect();
    // The image's superuser.
    await owner.query("create role postgres superuser login");
    await owner.end();
    objects = parseManifests(await cluster.kubectl(["kustomize", `${REPO_ROOT}/k8s/overlays/dev`]));
    await cluster.kubectl(["apply", "--server-side", "-k", `${REPO_ROOT}/k8s/overlays/dev`]);
    writeFileSync(join(cluster.dir, "token"), await cluster.kubectl(["create", "token", "setup", "-n", NAMESPACE]));
    nats = `nats://127.0.0.1:${String(await freePort())}`;
  });
  afterAll(async () => {
    postgres.stop();
    await cluster.close();
  });

  const secret = async (namespace: string, name: string): Promise<Record<string, string>> => {
    const { data } = (await cluster.get("secret", name, namespace)) as unknown as { data: Record<string, string> };
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64").toString("utf8")]));
  };

  /** The Job's own command, with this machine's addresses. */
  const setUp = async (): Promise<string> => {
    const job = workloadsIn(objects).find(({ kind }) => kind === "Job")!;
    const { host } = new URL(postgres.address);
    const args = mainContainer(job).args.map((arg) => arg.replace(/^--nats=.*/, `--nats=${nats}`).replace(/^--postgres=.*/, `--postgres=${host}`));
    const { stdout } = await run(process.execPath, [join(REPO_ROOT, "bin/app.mjs"), ...args, "--token-file", join(cluster.dir, "token")], {
      env: { PATH: process.env["PATH"] ?? "", NODE_EXTRA_CA_CERTS: cluster.caFile, KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: new URL(cluster.url).port }, timeout: 100_000,
    });
    return stdout;
  };

  it("makes secrets before there is a broker, and the same ones, with streams and tables, once there is", async () => {
    const first = setUp();
    const config = join(cluster.dir, "nats.conf");
    const deadline = Date.now() + 60_000;
    let token: string | undefined;
    while (token === undefined && Date.now() < deadline) token = (await secret(NAMESPACE, "broker").catch(() => undefined))?.["token"];
    writeFileSync(config, `listen: "${new URL(nats).host}"\njetstream { store_dir: ${JSON.stringify(join(cluster.dir, "nats"))} }\nauthorization { token: ${JSON.stringify(token)} }\n`);
    cluster.start("nats", await locateNats({ root: REPO_ROOT, report: () => undefined }), ["-c", config]);
    expect(await first).toMatch(/(\d+) secrets and key files, \1 of them new\nstreams are there\ndatabases and tables are there/);
    const made = await secret(NAMESPACE, "setup");
    expect(await setUp()).toMatch(/secrets and key files, 0 of them new/);
    expect(await secret(NAMESPACE, "setup")).toEqual(made);
  });

  it("makes every Secret and ConfigMap that the overlay refers to, with the keys", async () => {
    for (const [id, keys] of referredSecrets(objects)) {
      const [namespace = "", name = ""] = id.split("/");
      const isMap = ["trust", "nats"].includes(name);
      const data = isMap ? ((await cluster.get("configmap", name, namespace))["data"] as Record<string, string>) : await secret(namespace, name);
      expect({ id, keys: [...keys].filter((key) => !data[key]) }).toEqual({ id, keys: [] });
    }
  });

  it("makes keys that the apps can read: each signs as itself, all trust all, the API key opens", async () => {
    const dir = mkdtempSync(join(tmpdir(), "docket-keys-"));
    try {
      const trust = ((await cluster.get("configmap", "trust", TOOLS_NAMESPACE))["data"] as Record<string, string>)["trust.jwks.json"]!;
      writeFileSync(join(dir, "trust.jwks.json"), trust);
      for (const app of ["sessions", "console", "tools"] as const) {
        const [[file, text] = ["", ""]] = Object.entries(await secret(app === "tools" ? TOOLS_NAMESPACE : NAMESPACE, `signing-${app}`));
        writeFileSync(join(dir, file), text);
        const signer = await loadSigner(dir, app);
        expect((await loadTrust(dir)).keys.get(signer.kid)?.app).toBe(app);
      }
      writeFileSync(join(dir, "api-keys.json"), (await secret(NAMESPACE, "api-keys"))["api-keys.json"]!);
      const keys = createApiKeys(await readApiKeyFile(join(dir, "api-keys.json")));
      expect(keys.authenticate(`Bearer ${(await secret(NAMESPACE, "api-key"))["key"]!}`).principal.id).toBe("operator");
      expect(keys.development()).toBe(false);
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it("makes a stream for each channel", async () => {
    const { connect } = await import("@nats-io/transport-node");
    const { jetstreamManager } = await import("@nats-io/jetstream");
    const connection = await connect({ servers: nats, token: (await secret(NAMESPACE, "broker"))["token"]! });
    try {
      const names = await (await jetstreamManager(connection)).streams.list().next();
      expect(names.map(({ config }) => config.subjects).flat().sort()).toEqual(Object.values(CHANNELS).map(({ topic }) => topic).sort());
    } finally {
      await connection.close();
    }
  });

  it("gives each app a database that it alone owns, with the table that sidecars must not make at once", async () => {
    const address = async (namespace: string, name: string): Promise<URL> => new URL((await secret(namespace, name))["connectionString"]!);
    for (const [namespace, name, table] of [[NAMESPACE, "session-store", "docket_sessions_metadata"], [NAMESPACE, "inbox", "docket_inbox_metadata"], [TOOLS_NAMESPACE, "tool-store", "docket_tools_metadata"]] as const) {
      const own = await address(namespace, name);
      const client = new pg.Client({ connectionString: own.href });
      await client.connect();
      expect((await client.query(`select count(*)::int as rows from ${table}`)).rows).toEqual([{ rows: 0 }]);
      const { rows } = await client.query<{ can: boolean; name: string }>("select datname as name, has_database_privilege(datname, 'connect') as can from pg_database where datname like 'docket\\_%' order by 1");
      expect(rows.filter(({ can }) => can).map((row) => row.name)).toEqual([own.pathname.slice(1)]);
      await client.end();
    }
  });

  it("cannot read what it made for others", async () => {
    for (const [namespace, name] of [[NAMESPACE, "signing-console"], [NAMESPACE, "session-store"], [TOOLS_NAMESPACE, "tool-store"]] as const) {
      const may = await cluster.kubectl(["auth", "can-i", "get", `secrets/${name}`, "-n", namespace, "--as", `system:serviceaccount:${NAMESPACE}:setup`]).catch((error: unknown) => (error as { stdout: string }).stdout);
      expect(may.trim()).toBe("no");
    }
  });
});
