/** Owns: which data folder a command means that works on files of this machine. */
import { existsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { CliIo } from "./io.js";

/** DOCKET_DATA_DIR, or the nearest `.docket` here or above that has keys, or the one that would be here. */
export function dataDirOf(io: CliIo): string {
  const named = io.env["DOCKET_DATA_DIR"];
  if (named !== undefined && named !== "") return resolve(io.cwd, named);
  for (let at = io.cwd; ; at = dirname(at)) {
    if (existsSync(join(at, ".docket", "keys"))) return join(at, ".docket");
    if (dirname(at) === at) return join(io.cwd, ".docket");
  }
}

/** Keys of this machine's installation: DOCKET_KEYS_DIR, or those of its data folder. */
export function keysDirOf(io: CliIo): string {
  const named = io.env["DOCKET_KEYS_DIR"];
  return named === undefined || named === "" ? join(dataDirOf(io), "keys") : resolve(io.cwd, named);
}
