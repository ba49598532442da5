/**
 * Owns: the word of a session host that a session was deleted: its workspace is removed, unless it is in use or was used since. It is
 * signed like a grant. One that cannot be believed or arrives too late changes nothing: the workspace then goes by age.
 */
import { parseEnvelope } from "../contracts/cloudevent.js";
import type { DeliveryStatus } from "../contracts/messages.js";
import { Problem } from "../contracts/problems.js";
import { WORKSPACE_RELEASE, WORKSPACE_RELEASED, WorkspaceReleased } from "../contracts/tools.js";
import type { GrantVerifier, Log } from "./ports.js";
import type { Workspaces } from "./workspace.js";

export interface ReleaseDeps { readonly grants: GrantVerifier; readonly workspaces: Pick<Workspaces, "forget">; readonly log: Log }

/** Settles a delivery that releases a workspace; undefined where it is something else. Never throws. */
export async function handleRelease(deps: ReleaseDeps, text: string): Promise<DeliveryStatus | undefined> {
  const released = releasedIn(text);
  if (released === undefined) return undefined;
  const { actorId, deletedAtMs, proof } = released;
  try {
    const { sub, tool, digest } = await deps.grants.verify(proof);
    if (sub !== actorId || tool !== WORKSPACE_RELEASE || digest !== String(deletedAtMs)) throw new Problem("bad_signature", `what was signed does not release the workspace of ${actorId}`);
    const removed = await deps.workspaces.forget(actorId, deletedAtMs);
    deps.log("info", removed ? "the workspace of a deleted session was removed" : "a deleted session has no workspace here, or it is in use", { actorId });
  } catch (error) {
    if (error instanceof Problem && error.retryable) return "RETRY";
    deps.log("warn", "a workspace was not released; it goes by age", { actorId, error: error instanceof Error ? error.message : String(error) });
  }
  return "SUCCESS";
}

/** Looked for as text first: every tool request passes here. */
function releasedIn(text: string): WorkspaceReleased | undefined {
  if (!text.includes(WORKSPACE_RELEASED)) return undefined;
  try {
    const envelope = parseEnvelope(text);
    return envelope.type === WORKSPACE_RELEASED ? WorkspaceReleased.parse(JSON.parse(envelope.data)) : undefined;
  } catch {
    return undefined; // whoever gets it next says what is wrong with it
  }
}
