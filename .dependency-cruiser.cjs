// Rooms (DESIGN 8): imports go one way only. Each rule carries its reason.
const room = (name, comment, from, allowed) => ({
  name, severity: "error", comment, from: { path: from },
  to: { path: "^(src|agents|test)/", pathNot: [from, ...allowed] },
});
module.exports = {
  forbidden: [
    { name: "no-circular", severity: "error", comment: "A cycle has no reading order.", from: {}, to: { circular: true } },
    room("contracts-know-nobody", "The wire language depends on no app.", "^src/contracts/", []),
    room("core-is-pure", "decide and evolve see contracts only: no clock, store or sidecar can creep in.", "^src/session/core/", ["^src/contracts/"]),
    { name: "core-libraries", severity: "error", comment: "The core may use CEL, JSON Schema, YAML and hashing, nothing else from outside.", from: { path: "^src/session/core/" },
      to: { dependencyTypes: ["npm", "npm-dev", "npm-optional", "core"], pathNot: ["node_modules/(zod|ajv|yaml|@marcbachmann/cel-js|lossless-json)/", "^crypto$", "^node:crypto$"] } },
    room("platform-is-below", "Logging, config and ids serve every app and know none.", "^src/platform/", ["^src/contracts/"]),
    room("host-uses-ports", "The actor's shell declares what it needs; adapters are handed in by src/main.", "^src/session/host/", ["^src/contracts/", "^src/session/core/", "^src/agent/", "^src/model/model", "^src/platform/"]),
    room("agent-definitions", "What users write is read by every app.", "^src/agent/", ["^src/contracts/", "^src/platform/"]),
    room("models-are-leaves", "A provider knows the seam and the wire, not the session.", "^src/model/", ["^src/contracts/", "^src/platform/"]),
    room("worker-is-isolated", "The worker never sees session code (DESIGN 6).", "^src/tools/", ["^src/contracts/", "^src/agent/", "^src/platform/"]),
    room("gateway-is-an-edge", "The edge talks to sessions through channels only.", "^src/gateway/", ["^src/contracts/", "^src/agent/", "^src/platform/"]),
    room("console-looks-on", "The console has the wire, the policy code that runs in production for its 'try it', and the fold that makes a state of a journal.", "^src/console/", ["^src/contracts/", "^src/platform/", "^src/session/core/policy/", "^src/session/core/(seal|evolve|state)\\."]),
    room("dapr-is-an-adapter", "The sidecar's facts live here and nowhere else.", "^src/dapr/", ["^src/contracts/", "^src/platform/"]),
    room("launcher-starts-things", "The launcher starts processes; it is no part of an app.", "^src/launcher/", ["^src/contracts/", "^src/platform/", "^src/dapr/probe"]),
    room("cli-is-a-client", "The CLI speaks HTTP like any client.", "^src/cli/", ["^src/contracts/", "^src/platform/", "^src/launcher/", "^src/session/core/policy/"]),
    room("web-is-a-client", "The pages know the wire and its types, and no code of an app.", "^web/", ["^src/contracts/", "^src/session/core/policy/policy"]),
    { name: "dapr-sdk-in-its-room", severity: "error", comment: "@dapr/dapr has 25 traps; they are handled in src/dapr.", from: { pathNot: "^src/dapr/" }, to: { path: "node_modules/@dapr/dapr" } },
    { name: "telemetry-sdk-in-its-room", severity: "error", comment: "Everything else says spans and numbers through src/platform/telemetry, which costs nothing when it is off.", from: { path: "^src/", pathNot: "^src/platform/telemetry/[a-z]+-sdk\\." }, to: { path: "node_modules/@opentelemetry/" } },
    { name: "agents-do-not-import-their-tools", severity: "error", comment: "Tool code runs in the worker only; an agent names its tools.", from: { path: "^agents/[^/]+/(agent|versions/)" }, to: { path: "^agents/[^/]+/tools" } },
    room("agents-use-the-definition-api", "An agent is data and plain functions.", "^agents/", ["^src/agent/", "^src/contracts/"]),
  ],
  options: {
    doNotFollow: { path: "node_modules" }, tsPreCompilationDeps: true, tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
