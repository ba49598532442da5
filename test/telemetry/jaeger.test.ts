/**
 * The same run as test/e2e/telemetry.test.ts, exported as protobuf to a real Jaeger (runtime/jaeger) and asked back over its query API.
 * Not part of `npm test`: building Jaeger takes minutes. `npm run test:telemetry`.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { z } from "zod";
import { choosePorts } from "../../src/launcher/ports.js";
import { locateTestServer } from "../../src/launcher/runtime/locate.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventually, startDocket, type Docket } from "../support/docket.js";
import { readOtlp, type SeenSpan } from "../support/spans.js";
import { checkTracedRun, tracedRun } from "../support/traced-run.js";

let jaeger: ChildProcess;
let queryUrl: string;
let docket: Docket;

beforeAll(async () => {
  const binary = await locateTestServer("jaeger", { root: REPO_ROOT, report: (line) => process.stderr.write(`[jaeger] ${line}\n`) });
  const { otlp, query, grpc } = await choosePorts({ wishes: { otlp: undefined, query: undefined, grpc: undefined }, mode: "free", overrides: {} }) as Record<"otlp" | "query" | "grpc", number>;
  jaeger = spawn(binary, ["--config", join(REPO_ROOT, "runtime", "jaeger", "config.yaml")], { stdio: "ignore", env: { ...process.env, JAEGER_OTLP_PORT: String(otlp), JAEGER_QUERY_PORT: String(query), JAEGER_GRPC_PORT: String(grpc) } });
  queryUrl = `http://127.0.0.1:${String(query)}`;
  await eventually("Jaeger answers", async () => ((await fetch(`${queryUrl}/api/v3/services`)).ok ? true : undefined), 30_000);
  const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `http://127.0.0.1:${String(otlp)}/v1/traces`, OTEL_BSP_SCHEDULE_DELAY: "200" };
  docket = await startDocket({ extraEnv: { gateway: env, sessions: env, tools: env, console: env } });
});
afterAll(async () => {
  await docket.close();
  jaeger.kill("SIGKILL");
});

const Answer = z.object({ result: z.unknown() });

async function traceIn(traceId: string): Promise<readonly SeenSpan[]> {
  const reply = await fetch(`${queryUrl}/api/v3/traces/${traceId}`);
  return reply.ok ? readOtlp(Answer.parse(await reply.json()).result) : [];
}

describe("a real Jaeger", () => {
  it("shows a run that crossed an approval and kill -9 of everything as one connected tree", async () => {
    checkTracedRun(await tracedRun(docket, traceIn));
  });
});
