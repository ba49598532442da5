/**
 * Owns: which loopback port each part of the stack gets, and whether it is free.
 * Default ports lie below the kernel's ephemeral range on purpose: a port up there can be taken by any outgoing connection
 * between a kill and the restart. Names are `placement`, `gateway.http`, `sessions-2.app` …: what --port and DOCKET_PORTS take.
 */
import { createServer } from "node:net";
import { LauncherError } from "./errors.js";
import { findPortHolder } from "./port-holder.js";

export type PortMap = Readonly<Record<string, number>>;

const INFRA_PORTS: PortMap = {
  broker: 7310,
  placement: 7320,
  "placement.raft": 7321,
  "placement.health": 7322,
  "placement.metrics": 7323,
  scheduler: 7330,
  "scheduler.health": 7331,
  "scheduler.metrics": 7332,
  "scheduler.etcd": 7333,
  "scheduler.peer": 7334,
};

/** Where ports beyond those that dapr.yaml and this file name are looked for. */
const FREE_RANGE = { from: 10_240, to: 31_999 };

export interface PortRequest {
  /** Name and the wished port; undefined means any free one. */
  readonly wishes: Readonly<Record<string, number | undefined>>;
  /** `free` ignores the wishes, so that several stacks run side by side (tests). */
  readonly mode: "default" | "free";
  /** From --port and DOCKET_PORTS: wins over everything. */
  readonly overrides: PortMap;
}

/** Those of sentry, where sidecars use mutual TLS. */
const SENTRY_PORTS: PortMap = { sentry: 7325, "sentry.health": 7326 };

/** The wishes for the infrastructure processes. */
export function infraPortWishes(mtls: boolean): PortMap {
  return mtls ? { ...INFRA_PORTS, ...SENTRY_PORTS } : INFRA_PORTS;
}

/** Settles every wish. Does not check that wished ports are free: see checkPortsFree. */
export async function choosePorts(request: PortRequest): Promise<PortMap> {
  const unknown = Object.keys(request.overrides).find((name) => !(name in request.wishes));
  if (unknown !== undefined) {
    throw new LauncherError("OPTION_INVALID", `No part of the stack has a port named "${unknown}".`, `Known names: ${Object.keys(request.wishes).join(", ")}.`);
  }
  const chosen: Record<string, number> = {};
  const used = new Set<number>();
  for (const [name, wish] of Object.entries(request.wishes)) {
    const port = request.overrides[name] ?? (request.mode === "default" ? wish : undefined);
    if (port === undefined) continue;
    chosen[name] = port;
    used.add(port);
  }
  for (const name of Object.keys(request.wishes)) {
    chosen[name] ??= await findFreePort(used);
  }
  return chosen;
}

async function findFreePort(used: Set<number>): Promise<number> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const port = FREE_RANGE.from + Math.floor(Math.random() * (FREE_RANGE.to - FREE_RANGE.from));
    if (used.has(port)) continue;
    used.add(port);
    if (await isPortFree(port)) return port;
  }
  throw new LauncherError("PORT_TAKEN", `No free port found between ${FREE_RANGE.from} and ${FREE_RANGE.to} after 500 tries.`, "Stop what holds so many ports, or name ports with --port <name>=<number>.");
}

/** True when nothing listens on the loopback port. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => {
      resolve(false);
    });
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      server.close(() => {
        resolve(true);
      });
    });
  });
}

/** Throws one error that lists every taken port with the process that holds it. */
export async function checkPortsFree(ports: PortMap): Promise<void> {
  const taken: string[] = [];
  let example: string | undefined;
  for (const [name, port] of Object.entries(ports)) {
    if (await isPortFree(port)) continue;
    example ??= name;
    const holder = await findPortHolder(port);
    taken.push(`127.0.0.1:${port} (${name}) is held by ${holder ?? "a process that could not be identified"}`);
  }
  if (example === undefined) return;
  throw new LauncherError(
    "PORT_TAKEN",
    `The stack cannot start, ${taken.length === 1 ? "a port is" : "ports are"} taken:\n  ${taken.join("\n  ")}`,
    `Stop that process, or choose another port: npm run dev -- --port ${example}=<number> (or DOCKET_PORTS=${example}=<number>); --ports free picks all ports anew.`,
  );
}

/** Parses `name=number[,name=number…]`. */
export function parsePortOverrides(specs: readonly string[]): PortMap {
  const overrides: Record<string, number> = {};
  for (const spec of specs.flatMap((item) => item.split(",")).map((item) => item.trim()).filter(Boolean)) {
    const match = /^([\w.-]+)=(\d+)$/.exec(spec);
    const port = Number(match?.[2]);
    if (match?.[1] === undefined || port < 1 || port > 65_535) {
      throw new LauncherError("OPTION_INVALID", `"${spec}" is not a port setting.`, "Expected <name>=<number>, for example gateway.public=7400.");
    }
    overrides[match[1]] = port;
  }
  return overrides;
}
