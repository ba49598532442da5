/** Owns: which Docket this is: the version of the package that this file belongs to, compiled or not. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";

const Package = z.object({ name: z.literal("docket"), version: z.string() });

/** Read from the nearest package.json above; the image and a checkout both have one. */
export function versionOf(from = dirname(fileURLToPath(import.meta.url))): string {
  for (let dir = from; ; dir = dirname(dir)) {
    const found = packageIn(dir);
    if (found !== undefined) return found.version;
    if (dirname(dir) === dir) return "unknown";
  }
}

function packageIn(dir: string): z.infer<typeof Package> | undefined {
  try {
    return Package.parse(JSON.parse(readFileSync(join(dir, "package.json"), "utf8")));
  } catch {
    return undefined; // none here, or another's
  }
}
