/** Owns: one scratch folder per session, below one root. Actor ids are `[A-Za-z0-9_-]{1,64}`: safe as a folder's name. */
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { Problem } from "../contracts/problems.js";

/** Makes the folder where it is missing and gives its real path. */
export function workspacesIn(root: string): (actorId: string) => Promise<string> {
  return async (actorId) => {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(actorId)) throw new Problem("bad_request", `the actor id ${JSON.stringify(actorId.slice(0, 100))} is not usable as a folder's name`);
    const folder = join(root, actorId);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    return realpath(folder);
  };
}
