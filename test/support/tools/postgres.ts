/**
 * Owns: a throwaway PostgreSQL for a test file. DOCKET_TEST_POSTGRES names a server to use instead; without one and without
 * installed binaries there is none.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { choosePorts } from "../../../src/launcher/ports.js";

const ROOT = "/usr/lib/postgresql";

export function hasPostgres(): boolean {
  return process.env["DOCKET_TEST_POSTGRES"] !== undefined || binaries() !== undefined;
}

/** Address of an empty database with all rights, and its end. `durable`: with fsync, as in production. */
export async function startPostgres({ durable = false }: { readonly durable?: boolean } = {}): Promise<{ address: string; stop: () => void }> {
  const given = process.env["DOCKET_TEST_POSTGRES"];
  if (given !== undefined) return { address: given, stop: () => undefined };
  const bin = binaries();
  if (bin === undefined) throw new Error("no PostgreSQL found");
  const home = mkdtempSync(join(tmpdir(), "docket-pg-"));
  const port = await freePort();
  // PostgreSQL refuses to run as root.
  const asRoot = process.getuid?.() === 0;
  if (asRoot) {
    const owner = statSync("/var/lib/postgresql");
    chownSync(home, owner.uid, owner.gid);
    chmodSync(home, 0o700);
  }
  const run = (tool: string, args: string[]): void => {
    const command = [join(bin, tool), ...args];
    execFileSync(asRoot ? "runuser" : command[0]!, asRoot ? ["-u", "postgres", "--", ...command] : command.slice(1), { stdio: "ignore", cwd: tmpdir() });
  };
  run("initdb", ["-D", join(home, "data"), "-U", "docket", "-A", "trust", "--no-sync"]);
  run("pg_ctl", ["-D", join(home, "data"), "-w", "-l", join(home, "log"), "-o", `-p ${String(port)} -k ${home} -c listen_addresses=127.0.0.1 -c fsync=${durable ? "on" : "off"}`, "start"]);
  return {
    address: `postgres://docket@127.0.0.1:${String(port)}/postgres`,
    stop: () => {
      run("pg_ctl", ["-D", join(home, "data"), "-m", "immediate", "stop"]);
      rmSync(home, { recursive: true, force: true });
    },
  };
}

function binaries(): string | undefined {
  if (!existsSync(ROOT)) return undefined;
  return readdirSync(ROOT).sort().reverse().map((version) => join(ROOT, version, "bin")).find((bin) => existsSync(join(bin, "initdb")));
}

/** Below the ephemeral range: one up there can be taken by any outgoing connection before the server binds it. */
async function freePort(): Promise<number> {
  const { postgres = 0 } = await choosePorts({ wishes: { postgres: undefined }, mode: "free", overrides: {} });
  return postgres;
}
