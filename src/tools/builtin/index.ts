import type { Tool } from "../../agent/definition.js";
export const builtinTools = (_options: { httpAllowHosts: readonly string[]; sqlConnections: Record<string, string> }): Tool[] => [];
