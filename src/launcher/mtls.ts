/**
 * Owns: the certificate authority of a stack with mutual TLS: its credentials in `<dataDir>/mtls`, made once by sentry itself, and what the other
 * parts must know of it before they start. Outside Kubernetes sentry gives an identity to whoever asks: this shows that the stack works with
 * certificates, and keeps nobody on this machine out. API tokens and app tokens do that, as always.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { sentryArgs, SENTRY_CONFIG, type Mtls } from "./commands.js";
import { LauncherError } from "./errors.js";
import type { PortMap } from "./ports.js";
import { locateSentry } from "./runtime/locate.js";

export interface MtlsSetup extends Mtls {
  readonly sentry: string;
  readonly credentialsDir: string;
}

export interface MtlsOptions {
  readonly root: string;
  readonly dataDir: string;
  readonly ports: PortMap;
  readonly report: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
}

/** In the order in which sentry writes them. */
const FILES = ["ca.crt", "issuer.crt", "issuer.key"] as const;
const MAKE_MS = 30_000;

/** Finds sentry, and has it make its credentials where there are none. */
export async function prepareMtls(options: MtlsOptions): Promise<MtlsSetup> {
  const sentry = await locateSentry(options);
  const credentialsDir = join(options.dataDir, "mtls");
  mkdirSync(credentialsDir, { recursive: true, mode: 0o700 });
  writeFileSync(join(credentialsDir, SENTRY_CONFIG), "apiVersion: dapr.io/v1alpha1\nkind: Configuration\nmetadata: { name: sentry }\nspec: { mtls: { enabled: true } }\n");
  if (!complete(credentialsDir)) await makeCredentials(sentry, credentialsDir, options.ports);
  const trustAnchorsFile = join(credentialsDir, FILES[0]);
  return { sentry, credentialsDir, trustAnchorsFile, trustAnchors: readFileSync(trustAnchorsFile, "utf8") };
}

function complete(dir: string): boolean {
  return FILES.every((name) => existsSync(join(dir, name)) && statSync(join(dir, name)).size > 0);
}

async function makeCredentials(sentry: string, dir: string, ports: PortMap): Promise<void> {
  const child = spawn(sentry, sentryArgs(ports, dir), { cwd: dir, stdio: "ignore", env: {} });
  const gone = new Promise<void>((resolve) => { child.once("exit", () => { resolve(); }); child.once("error", () => { resolve(); }); });
  for (const deadline = Date.now() + MAKE_MS; !complete(dir) && Date.now() < deadline && child.exitCode === null;) await sleep(50);
  child.kill("SIGKILL");
  await gone;
  if (!complete(dir)) throw new LauncherError("NOT_READY", `sentry made no credentials in ${dir}.`, `Remove that folder and start again. ${sentry} --help shows whether it runs at all.`);
}
