/** Owns: the doctor's checks of the machine: Node, dependencies, runtime, disk, data folder. */
import { constants } from "node:fs";
import { access, mkdir, readFile, stat, statfs, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { LauncherError } from "../errors.js";
import { goVersion } from "../runtime/build.js";
import { locateDapr, locateNats } from "../runtime/locate.js";
import { startsOwnBroker, type ProfileName } from "../profiles.js";
import { fail, ok, warn, type CheckTask, type Finding } from "./check.js";

const MIN_NODE = [20, 19] as const;
const LOW_DISK_BYTES = 2 * 1024 ** 3;
const EMPTY_DISK_BYTES = 256 * 1024 ** 2;

/** The checks of this machine, independent of any running stack. */
export function machineChecks(root: string, dataDir: string, profile: ProfileName): CheckTask[] {
  return [
    { name: "node", run: checkNode },
    { name: "dependencies", run: () => checkDependencies(root) },
    { name: "dapr runtime", run: () => checkDapr(root) },
    ...(startsOwnBroker(profile) ? [{ name: "nats-server", run: () => checkNats(root) }] : []),
    { name: "data folder", run: () => checkDataDir(dataDir) },
    { name: "disk space", run: () => checkDisk(dataDir) },
  ];
}

function checkNode(): Finding {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const enough = major > MIN_NODE[0] || (major === MIN_NODE[0] && minor >= MIN_NODE[1]);
  return enough ? ok(`Node ${process.versions.node}`) : fail(`Node ${process.versions.node} at ${process.execPath}, expected >= ${MIN_NODE.join(".")}`, "Install a current Node: https://nodejs.org");
}

async function checkDependencies(root: string): Promise<Finding> {
  const [lock, installed] = await Promise.all([mtime(join(root, "package-lock.json")), mtime(join(root, "node_modules", ".package-lock.json"))]);
  if (installed === undefined) return fail("node_modules is missing", "npm ci");
  if (lock !== undefined && lock > installed) return warn("package-lock.json is newer than node_modules", "npm ci");
  return ok("installed, as the lock file says");
}

async function checkDapr(root: string): Promise<Finding> {
  try {
    const dapr = await locateDapr({ root, report: () => undefined, build: false });
    return ok(`Dapr ${dapr.version}, ${dapr.source}`);
  } catch (error) {
    if (!(error instanceof LauncherError) || error.code !== "RUNTIME_MISSING" || process.env["DOCKET_RUNTIME_DIR"]) throw error;
    const go = await goVersion();
    if (go === undefined) return fail(error.message, error.hint);
    return warn(`not built yet; Go ${go} is here to build it`, "npm run dev builds it once (about five minutes).");
  }
}

async function checkNats(root: string): Promise<Finding> {
  try {
    return ok(await locateNats({ root, report: () => undefined, build: false }));
  } catch (error) {
    const go = await goVersion();
    if (go === undefined) throw error;
    return warn(`not built yet; Go ${go} is here to build it`, "npm run dev builds it once.");
  }
}

async function checkDataDir(dataDir: string): Promise<Finding> {
  const probe = join(dataDir, `.doctor-${process.pid}`);
  try {
    await mkdir(dataDir, { recursive: true });
    await access(dataDir, constants.W_OK);
    await writeFile(probe, "x");
    if ((await readFile(probe, "utf8")) !== "x") return fail(`${dataDir} does not give back what was written`, "Choose another folder: --data-dir <folder>.");
    return ok(dataDir);
  } catch (error) {
    return fail(`${dataDir} cannot be written: ${String(error)}`, "Correct its owner and rights, or choose another folder: --data-dir <folder>.");
  } finally {
    await unlink(probe).catch(() => undefined);
  }
}

async function checkDisk(dataDir: string): Promise<Finding> {
  const place = (await mtime(dataDir)) === undefined ? dirname(dataDir) : dataDir;
  const { bavail, bsize } = await statfs(place);
  const free = bavail * bsize;
  const text = `${(free / 1024 ** 3).toFixed(1)} GiB free at ${place}`;
  if (free < EMPTY_DISK_BYTES) return fail(text, "Make room: the broker refuses events and SQLite commits fail on a full disk.");
  return free < LOW_DISK_BYTES ? warn(text, "Make room soon: broker and journal need it.") : ok(text);
}

async function mtime(path: string): Promise<number | undefined> {
  return stat(path).then((stats) => stats.mtimeMs, () => undefined);
}
