/** Owns: the shape of `GET /v1/agents`. */
import type { ToolManifest } from "../../../src/contracts/tools.js";

interface Agent {
  readonly name: string; readonly version: string; readonly description: string; readonly instructions: string; readonly model: string;
  readonly tools: readonly string[]; readonly triggers: readonly string[]; readonly limits: Readonly<Record<string, number>>;
}
export interface Installed { readonly agents: readonly Agent[]; readonly tools: readonly ToolManifest[] }
