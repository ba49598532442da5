/**
 * Owns: finding or building the runtime ahead of time (scripts/test.mjs), so that no test's time limit pays for the build.
 * `kfake` as argument: the stand-in for Kafka too, which only the matrix layer needs.
 */
import { LauncherError, messageOf } from "../launcher/errors.js";
import { locateDapr, locateKfake, locateNats } from "../launcher/runtime/locate.js";

async function main(): Promise<void> {
  const report = (line: string): void => {
    process.stdout.write(`${line}\n`);
  };
  const options = { root: process.cwd(), report };
  const dapr = await locateDapr(options);
  const nats = await locateNats(options);
  if (process.argv.includes("kfake")) report(`Kafka stand-in: ${await locateKfake(options)}`);
  report(`Runtime: Dapr ${dapr.version}, ${dapr.source}; broker ${nats}`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof LauncherError ? error.render() : messageOf(error)}\n`);
  process.exitCode = 1;
});
