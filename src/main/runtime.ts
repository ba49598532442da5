/**
 * Owns: finding or building the runtime ahead of time (scripts/test.mjs), so that no test's time limit pays for the build.
 * As arguments what only some layers need: `kfake` (matrix), `jaeger` (telemetry), `kustomize`, `sentry` (mTLS), `cluster` (Kubernetes API server, Dapr's control plane).
 */
import { LauncherError, messageOf } from "../launcher/errors.js";
import { locateCluster, locateDapr, locateKustomize, locateNats, locateSentry, locateTestServer } from "../launcher/runtime/locate.js";

async function main(): Promise<void> {
  const report = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const options = { root: process.cwd(), report };
  const dapr = await locateDapr(options);
  const nats = await locateNats(options);
  for (const name of ["kfake", "jaeger"] as const) if (process.argv.includes(name)) report(`${name}: ${await locateTestServer(name, options)}`);
  if (process.argv.includes("kustomize")) report(`Manifests: ${await locateKustomize(options)}`);
  if (process.argv.includes("sentry")) report(`Sentry: ${await locateSentry(options)}`);
  if (process.argv.includes("cluster")) report(`Kubernetes API server: ${(await locateCluster(options)).apiserver}`);
  report(`Runtime: Dapr ${dapr.version}, ${dapr.source}; broker ${nats}`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof LauncherError ? error.render() : messageOf(error)}\n`);
  process.exitCode = 1;
});
