/** Everything under mutual TLS with identities of Dapr's sentry, API tokens and app tokens, as in a cluster: two session hosts, so that actor calls cross sidecars. */
import { X509Certificate } from "node:crypto";
import { connect as connectPlain } from "node:http2";
import { connect } from "node:tls";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { foldCheck } from "../support/checks.js";
import { eventually, freshSession, startDocket, type Docket } from "../support/docket.js";

let docket: Docket;

beforeAll(async () => {
  docket = await startDocket({ mtls: true, sessionsReplicas: 2 });
});
afterAll(async () => { await docket.close(); });

/** The certificate that a sidecar shows on its internal port. */
function certificateOf(instance: string): Promise<X509Certificate> {
  const port = docket.test.stack.ports[`${instance}.internal`] ?? 0;
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] }, () => {
      resolve(new X509Certificate(socket.getPeerCertificate().raw));
      socket.destroy();
    });
    socket.once("error", reject);
  });
}

describe("a stack with mutual TLS", () => {
  it("does the work over two session hosts: approval, tool, answer; and a restart of everything", async () => {
    const sessions = Array.from({ length: 6 }, () => freshSession("mtls"));
    const asked = await Promise.all(sessions.map((session) => docket.prompt(session, "refund 1200 cents of order 1001")));
    const approvals = await Promise.all(sessions.map((session) => docket.openApproval(session)));
    await docket.test.stack.killAll("SIGKILL");
    await docket.test.stack.startAll();
    for (const approval of approvals) expect(await docket.decide(approval, "approve")).toMatchObject({ status: 200 });
    for (const answer of asked) expect(await docket.ended(answer, 60_000)).toMatchObject({ state: "ended", outcome: "completed" });
    expect(foldCheck(docket).problems).toEqual([]);
  });

  it("gives each sidecar an identity of its own, signed by sentry's authority", async () => {
    const authority = new X509Certificate(readFileSync(join(docket.dataDir, "mtls", "issuer.crt")));
    for (const app of ["gateway", "sessions", "sessions-2", "tools", "console"]) {
      const certificate = await certificateOf(app);
      expect(certificate.subjectAltName).toBe(`URI:spiffe://public/ns/default/${app.replace(/-2$/, "")}`);
      expect(certificate.verify(authority.publicKey)).toBe(true);
    }
  });

  it("refuses a caller without a certificate: plain text, and TLS alone", async () => {
    const port = docket.test.stack.ports["sessions.internal"] ?? 0;
    const plain = connectPlain(`http://127.0.0.1:${String(port)}`);
    await expect(new Promise((resolve, reject) => {
      plain.once("error", reject).once("close", () => { reject(new Error("closed")); });
      plain.request({ ":method": "POST", ":path": "/dapr.proto.internals.v1.ServiceInvocation/CallActor", "content-type": "application/grpc", te: "trailers" }).on("response", resolve).on("error", reject).end();
    })).rejects.toThrow();
    plain.destroy();
    const refused = await new Promise<boolean>((resolve) => {
      const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ALPNProtocols: ["h2"] }, () => { socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); });
      socket.once("error", () => { resolve(true); }).once("close", () => { resolve(true); }).once("data", () => { resolve(false); });
    });
    expect(refused).toBe(true);
  });

  it("still asks for the tokens", async () => {
    const { DAPR_HTTP_PORT: sidecar, APP_PORT: app } = docket.test.stack.envOf("sessions");
    await eventually("the sidecar answers", async () => ((await docket.test.callSidecar("sessions", "/v1.0/metadata")).ok ? true : undefined));
    expect((await fetch(`http://127.0.0.1:${sidecar ?? ""}/v1.0/metadata`)).status).toBe(401);
    expect((await fetch(`http://127.0.0.1:${app ?? ""}/dapr/subscribe`)).status).toBe(401);
  });
});
