/** What an agent's author imports. Loading and routing are for the apps: see loader.ts and route.ts. */
export type { AgentDefinition, AgentEvent, CheckResult, Reconciled, Tool, ToolContext, ToolDefinition, Trigger } from "./definition.js";
export { defineAgent } from "./define-agent.js";
export { defineTool } from "./define-tool.js";
export { ToolFailure } from "./tool-failure.js";
export { bigInteger } from "./tool-schema.js";
