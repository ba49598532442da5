/** The tool worker, for src/main/tools.ts. */
export { createWorker, type Worker, type WorkerDeps, type WorkerOptions } from "./worker.js";
export { CallRecord } from "./record.js";
export type { CallStore, DeadLetters, GrantVerifier, Log, ResultSigner, Results, Secrets, WorkerClock } from "./ports.js";
export { systemWorkerClock } from "./clock.js";
export { handleRelease } from "./release.js";
export { Workspaces } from "./workspace.js";
