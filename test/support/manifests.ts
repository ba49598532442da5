/** Tool manifests for tests. */
import type { ToolManifest } from "../../src/contracts/tools.js";

export function manifestOf(overrides: Partial<ToolManifest> = {}): ToolManifest {
  return {
    name: "refund", description: "Refunds an order", inputSchema: { type: "object" }, effects: "once", critical: false, reconcilable: false,
    timeoutMs: 10_000, outputCapBytes: 10_000, maxTries: 3, risk: "medium", allowedDecisions: ["approve", "modify", "reject"], ...overrides,
  };
}
