import { defineConfig } from "vitest/config";

/** Layers (see docs/architecture.md): unit and contract need nothing running; integration, e2e and matrix start the real runtime on free ports, k8s a Kubernetes API server. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", include: ["test/unit/**/*.test.ts", "test/redteam/**/*.test.ts"], testTimeout: 20_000 } },
      { test: { name: "contract", include: ["test/contract/**/*.test.ts"], testTimeout: 60_000, hookTimeout: 120_000 } },
      { test: { name: "integration", include: ["test/integration/**/*.test.ts"], testTimeout: 180_000, hookTimeout: 300_000, fileParallelism: false } },
      { test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 300_000, hookTimeout: 300_000, fileParallelism: false } },
      { test: { name: "k8s", include: ["test/k8s/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 300_000, fileParallelism: false } },
      { test: { name: "telemetry", include: ["test/telemetry/**/*.test.ts"], testTimeout: 180_000, hookTimeout: 300_000, fileParallelism: false } },
      { test: { name: "matrix", include: ["test/matrix/**/*.test.ts"], testTimeout: 180_000, hookTimeout: 300_000, fileParallelism: false } },
    ],
  },
});
