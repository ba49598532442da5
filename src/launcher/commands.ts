/** Owns: the command lines of placement, scheduler, the broker and daprd, for each runtime version that they differ in. */
import { join } from "node:path";
import type { PortMap } from "./ports.js";

const LOOPBACK = "127.0.0.1";
/** Dapr's own default outside Kubernetes. */
const TRUST_DOMAIN = "localhost";
/** Sentry does not start without a Configuration, though it needs nothing of it. */
export const SENTRY_CONFIG = "sentry.yaml";

/** What mutual TLS needs of every part; undefined where it is off. */
export interface Mtls {
  /** The certificate authority, for those who read a file. */
  readonly trustAnchorsFile: string;
  /** The same, for sidecars, which read a variable. */
  readonly trustAnchors: string;
}

/** Sentry, the certificate authority. It makes its own credentials where the folder has none. */
export function sentryArgs(ports: PortMap, credentialsDir: string): string[] {
  return [
    "--port", portOf(ports, "sentry"), "--listen-address", LOOPBACK,
    "--healthz-port", portOf(ports, "sentry.health"), "--healthz-listen-address", LOOPBACK,
    "--enable-metrics=false", "--config", join(credentialsDir, SENTRY_CONFIG), "--issuer-credentials", credentialsDir, "--trust-domain", TRUST_DOMAIN,
  ];
}

function identityArgs(ports: PortMap, mtls: Mtls | undefined): string[] {
  if (mtls === undefined) return [];
  return ["--tls-enabled", "--sentry-address", `${LOOPBACK}:${portOf(ports, "sentry")}`, "--trust-anchors-file", mtls.trustAnchorsFile, "--trust-domain", TRUST_DOMAIN];
}

/** Placement: in-memory raft, since its table is rebuilt from the sidecars that connect. */
export function placementArgs(ports: PortMap, mtls?: Mtls): string[] {
  return [
    "--port", portOf(ports, "placement"), "--listen-address", LOOPBACK,
    "--healthz-port", portOf(ports, "placement.health"), "--healthz-listen-address", LOOPBACK,
    "--metrics-port", portOf(ports, "placement.metrics"), "--metrics-listen-address", LOOPBACK,
    "--id", "dapr-placement-0", "--initial-cluster", `dapr-placement-0=${LOOPBACK}:${portOf(ports, "placement.raft")}`,
    ...identityArgs(ports, mtls),
  ];
}

/** Scheduler with its embedded etcd. Flags were renamed in 1.15, and from then on daprd dials what is broadcast. */
export function schedulerArgs(ports: PortMap, dataDir: string, version: string, mtls?: Mtls): string[] {
  const peer = `dapr-scheduler-server-0=http://localhost:${portOf(ports, "scheduler.peer")}`;
  const etcd = portOf(ports, "scheduler.etcd");
  return [
    "--port", portOf(ports, "scheduler"), "--listen-address", LOOPBACK,
    "--healthz-port", portOf(ports, "scheduler.health"), "--healthz-listen-address", LOOPBACK,
    "--metrics-port", portOf(ports, "scheduler.metrics"), "--metrics-listen-address", LOOPBACK,
    "--id", "dapr-scheduler-server-0", "--etcd-data-dir", join(dataDir, "scheduler"),
    ...identityArgs(ports, mtls),
    ...(isBefore115(version)
      ? ["--initial-cluster", peer, "--etcd-client-ports", `dapr-scheduler-server-0=${etcd}`]
      : ["--etcd-initial-cluster", peer, "--etcd-client-port", etcd, "--override-broadcast-host-port", `${LOOPBACK}:${portOf(ports, "scheduler")}`]),
  ];
}

export interface DaprdInputs {
  readonly appId: string;
  /** Names the ports: `sessions`, `sessions-2`. */
  readonly instance: string;
  readonly ports: PortMap;
  readonly resources: string;
  readonly configFile: string | undefined;
  readonly flags: readonly string[];
  readonly logLevel: string;
  readonly mtls: Mtls | undefined;
}

/** daprd, every port named and everything on loopback (its own defaults listen on all interfaces). */
export function daprdArgs(inputs: DaprdInputs): string[] {
  const port = (kind: string): string => portOf(inputs.ports, `${inputs.instance}.${kind}`);
  const placement = portOf(inputs.ports, "placement");
  return [
    "--app-id", inputs.appId, "--app-port", port("app"),
    "--dapr-listen-addresses", LOOPBACK, "--dapr-http-port", port("http"), "--dapr-grpc-port", port("grpc"),
    "--dapr-internal-grpc-port", port("internal"), "--dapr-internal-grpc-listen-address", LOOPBACK,
    // daprd 1.14 serves metrics on every interface, whatever address it is given: off, where everything is to stay on loopback.
    "--enable-metrics=false", "--metrics-port", port("metrics"), "--metrics-listen-address", LOOPBACK,
    "--resources-path", inputs.resources,
    ...(inputs.configFile === undefined ? [] : ["--config", inputs.configFile]),
    // Two spellings of one address, or a restart of placement is never noticed (DESIGN 7.12).
    "--placement-host-address", `${LOOPBACK}:${placement},localhost:${placement}`,
    "--scheduler-host-address", `${LOOPBACK}:${portOf(inputs.ports, "scheduler")}`,
    ...(inputs.mtls === undefined ? [] : ["--enable-mtls", "--sentry-address", `${LOOPBACK}:${portOf(inputs.ports, "sentry")}`]),
    "--dapr-graceful-shutdown-seconds", "3",
    "--log-level", inputs.logLevel,
    ...inputs.flags,
  ];
}

function isBefore115(version: string): boolean {
  const match = /^v?(\d+)\.(\d+)/.exec(version);
  return match !== null && Number(match[1]) === 1 && Number(match[2]) < 15;
}

/** A settled port as text. */
export function portOf(ports: PortMap, name: string): string {
  const port = ports[name];
  if (port === undefined) throw new Error(`No port was settled for "${name}".`);
  return String(port);
}
