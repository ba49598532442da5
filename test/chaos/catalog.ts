/** Owns: every fault by name: what it is done to, what shows that all is well again, how long it takes. Data; faults.ts does them. */
import type { FaultPoint } from "../../src/platform/faults.js";
import type { ChannelName } from "../../src/contracts/channels.js";
import { MISTREATMENTS, type Mistreatment } from "../support/fault-proxy.js";
import { MODEL_FAULTS, type ModelFault } from "./model.js";
import type { ChaosProfile } from "./options.js";

/** Where work must be in flight for a fault to count. */
export type Area = "gateway" | "host" | "worker" | "console" | "any";
export const TARGETS = {
  gateway: "gateway", host: "host", worker: "worker", console: "console",
  "gateway-daprd": "gateway", "host-daprd": "host", "worker-daprd": "worker", "console-daprd": "console",
  broker: "any", placement: "any", scheduler: "any", database: "any",
} as const satisfies Record<string, Area>;
export type Target = keyof typeof TARGETS;

/** The apps' copies in the order in which `roll` takes them. */
export const APP_COPIES = ["sessions", "sessions-2", "tools", "tools-2", "gateway", "console"] as const;

export type FaultAction =
  | { readonly do: "kill"; readonly target: Target }
  /** Longer than the worker's lock, the ack window and placement's patience (faults.ts has the numbers). `machine`: the app with its sidecar. */
  | { readonly do: "freeze"; readonly target: Target; readonly machine?: true }
  /** Stands still and goes on, again and again: slow, not dead. */
  | { readonly do: "pulse"; readonly target: Target }
  | { readonly do: "boundary"; readonly area: Exclude<Area, "any">; readonly point: FaultPoint }
  | { readonly do: "deliveries"; readonly how: Mistreatment; readonly channels: readonly ChannelName[] }
  | { readonly do: "clock"; readonly area: Exclude<Area, "any"> }
  | { readonly do: "model"; readonly how: ModelFault }
  | { readonly do: "network"; readonly target: "broker" | "database"; readonly how: "cut" | "hang" | "delay" }
  | { readonly do: "disk" }
  /** Every copy of every app with its sidecar, one after the other, asked to end (SIGTERM) and started again, with new work for each. */
  | { readonly do: "roll" };

export interface FaultKind {
  readonly name: string;
  readonly action: FaultAction;
  readonly area: Area;
  readonly probe: "plain" | "look" | "approve";
  readonly takesS: number;
  /** Only there. */
  readonly profile?: ChaosProfile;
}

const PROBES: Record<Area, FaultKind["probe"]> = { gateway: "plain", host: "plain", worker: "look", console: "approve", any: "look" };
const GROUPS = {
  tasks: ["tasks"], tools: ["toolRequests", "toolResults"], approvals: ["approvalsPending", "approvalsResolved"], outputs: ["responses", "journal"], letters: ["deadLetters"],
} as const satisfies Record<string, readonly ChannelName[]>;
const GROUP_AREAS: Record<keyof typeof GROUPS, Area> = { tasks: "host", tools: "worker", approvals: "console", outputs: "gateway", letters: "console" };
const BOUNDARIES: readonly (readonly [Exclude<Area, "any">, FaultPoint])[] = [
  ["gateway", "after-inbox-row"], ["gateway", "before-ack"], ["host", "before-commit"], ["host", "after-commit"], ["host", "before-ack"],
  ["worker", "before-ack"], ["worker", "after-claim"], ["worker", "after-effect"], ["worker", "after-result"], ["console", "before-decision"], ["console", "before-ack"],
];

const targets = Object.keys(TARGETS) as Target[];
const onlyWhere = (target: Target): Pick<FaultKind, "profile"> => (target === "database" ? { profile: "production" } : {});
const fault = (name: string, area: Area, takesS: number, action: FaultAction): FaultKind => ({ name, action, area, probe: PROBES[area], takesS });

/** All there are. */
export const CATALOG: readonly FaultKind[] = [
  ...targets.map((target) => ({ ...fault(`kill:${target}`, TARGETS[target], 8, { do: "kill", target }), ...onlyWhere(target) })),
  ...targets.map((target) => ({ ...fault(`freeze:${target}`, TARGETS[target], 30, { do: "freeze", target }), ...onlyWhere(target) })),
  fault("freeze:host-machine", "host", 38, { do: "freeze", target: "host", machine: true }),
  ...targets.map((target) => ({ ...fault(`pulse:${target}`, TARGETS[target], 10, { do: "pulse", target }), ...onlyWhere(target) })),
  ...BOUNDARIES.map(([area, point]) => fault(`boundary:${area}.${point}`, area, 9, { do: "boundary", area, point })),
  ...MISTREATMENTS.flatMap((how) => Object.entries(GROUPS).map(([group, channels]) => fault(`${how}:${group}`, GROUP_AREAS[group as keyof typeof GROUPS], how === "delay" ? 17 : 8, { do: "deliveries", how, channels }))),
  ...(["gateway", "host", "worker", "console"] as const).map((area) => fault(`clock:${area}`, area, 10, { do: "clock", area })),
  ...MODEL_FAULTS.map((how) => fault(`model:${how}`, "host", 10, { do: "model", how })),
  ...(["broker", "database"] as const).flatMap((target) => (["cut", "hang", "delay"] as const).map((how) => ({ ...fault(`${how}:${target}`, "any", 14, { do: "network", target, how }), profile: "production" as const }))),
  fault("roll:all", "any", 60, { do: "roll" }),
  fault("disk:state", "any", 12, { do: "disk" }),
];
