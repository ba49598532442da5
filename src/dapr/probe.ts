/**
 * Owns: the few questions the launcher asks daprd and an app over HTTP, each answered with undefined (yes) or the reason why not
 * yet. It asks on behalf of a stack that no app may be running in, so it keeps no connections.
 */
import { z } from "zod";

/** Why something is not ready yet; undefined when it is. */
export type NotYet = string | undefined;

export interface SidecarAddress {
  readonly port: number;
  readonly token: string;
}

const metadataSchema = z.object({
  components: z.array(z.object({ name: z.string() })).nullish(),
  subscriptions: z.array(z.object({ pubsubname: z.string(), topic: z.string() })).nullish(),
  actorRuntime: z.object({ runtimeStatus: z.string().optional(), hostReady: z.boolean().optional(), placement: z.string().optional() }).nullish(),
});

const PROBE_TIMEOUT_MS = 5_000;

async function request(port: number, path: string, init: RequestInit = {}): Promise<{ status: number; text: string } | string> {
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) });
    return { status: response.status, text: await response.text() };
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : String(error);
    return `no answer on port ${port} (${cause})`;
  }
}

/** GET `path` answers 2xx. */
export async function answersOk(port: number, path: string): Promise<NotYet> {
  const reply = await request(port, path);
  if (typeof reply === "string") return reply;
  return reply.status >= 200 && reply.status < 300 ? undefined : `GET :${port}${path} answers ${reply.status} ${reply.text.slice(0, 200)}`;
}

/** Something speaks HTTP on the port, whatever it says. */
export async function answersAtAll(port: number): Promise<NotYet> {
  const reply = await request(port, "/");
  return typeof reply === "string" ? reply : undefined;
}

/** daprd has initialised its components (the app need not be up). */
export function outboundReady(sidecar: SidecarAddress): Promise<NotYet> {
  return answersOk(sidecar.port, "/v1.0/healthz/outbound");
}

/** daprd has exactly these components, at least; names those that are missing. */
export async function componentsLoaded(sidecar: SidecarAddress, expected: readonly string[]): Promise<NotYet> {
  const metadata = await readMetadata(sidecar);
  if (typeof metadata === "string") return metadata;
  const loaded = new Set((metadata.components ?? []).map((component) => component.name));
  const missing = expected.filter((name) => !loaded.has(name));
  return missing.length === 0 ? undefined : `components not loaded: ${missing.join(", ")}`;
}

/** daprd has taken the app's subscriptions (it reads them after the app listens). */
export async function subscribed(sidecar: SidecarAddress, components: readonly string[]): Promise<NotYet> {
  const metadata = await readMetadata(sidecar);
  if (typeof metadata === "string") return metadata;
  const taken = new Set((metadata.subscriptions ?? []).map((subscription) => subscription.pubsubname));
  const missing = components.filter((name) => !taken.has(name));
  return missing.length === 0 ? undefined : `not subscribed to: ${missing.join(", ")} (the app lists its subscriptions at GET /dapr/subscribe)`;
}

/** The actor host has registered with placement. */
export async function actorHostReady(sidecar: SidecarAddress): Promise<NotYet> {
  const metadata = await readMetadata(sidecar);
  if (typeof metadata === "string") return metadata;
  return metadata.actorRuntime?.hostReady ? undefined : `actor host not ready (status ${metadata.actorRuntime?.runtimeStatus ?? "unknown"}, ${metadata.actorRuntime?.placement ?? "placement unknown"})`;
}

/** One real actor call comes back: health alone stays green when placement is lost (DESIGN 7.12). */
export async function actorAnswers(sidecar: SidecarAddress, actorType: string, actorId: string): Promise<NotYet> {
  const path = `/v1.0/actors/${actorType}/${actorId}/method/ping`;
  const reply = await request(sidecar.port, path, { method: "PUT", headers: headersOf(sidecar), body: "{}" });
  if (typeof reply === "string") return reply;
  // An empty 200 can stand for a call that failed (DESIGN 7.10), so the body must say so.
  return reply.status === 200 && /"ok"\s*:\s*true/.test(reply.text) ? undefined : `PUT ${path} answers ${reply.status} ${reply.text.slice(0, 200)}`;
}

async function readMetadata(sidecar: SidecarAddress): Promise<z.infer<typeof metadataSchema> | string> {
  const reply = await request(sidecar.port, "/v1.0/metadata", { headers: headersOf(sidecar) });
  if (typeof reply === "string") return reply;
  if (reply.status !== 200) return `GET :${sidecar.port}/v1.0/metadata answers ${reply.status} ${reply.text.slice(0, 200)}`;
  const parsed = metadataSchema.safeParse(JSON.parse(reply.text));
  return parsed.success ? parsed.data : `GET /v1.0/metadata answered something unexpected: ${parsed.error.message}`;
}

function headersOf(sidecar: SidecarAddress): Record<string, string> {
  return { "content-type": "application/json", "dapr-api-token": sidecar.token };
}
