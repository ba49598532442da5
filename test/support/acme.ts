/** Owns: types for the example's outside systems (examples/recorded-day/acme.mjs is plain JavaScript, so that it runs without a build). */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { REPO_ROOT } from "./cluster.js";

export interface AcmeCall { readonly atMs: number; readonly path: string; readonly key: string; readonly session: string; readonly status: number; readonly body: string }
export interface Acme {
  readonly url: string;
  calls(): AcmeCall[];
  effects(path: string): number;
  stop(): Promise<void>;
}

export async function startAcme(options: { port: number; file: string }): Promise<Acme> {
  const module = await import(pathToFileURL(join(REPO_ROOT, "examples/recorded-day/acme.mjs")).href) as { startAcme(options: { port: number; file: string }): Promise<Acme> };
  return await module.startAcme(options);
}
