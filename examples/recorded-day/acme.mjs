/**
 * Owns: the outside systems of the recorded day: orders, mail, files. One small server that fails as that day did:
 *   POST /orders/ord-1002/route   503 every time
 *   POST /mails/eml-2002/draft    503 twice for a key, then 200
 *   anything else                 200
 * It counts effects by idempotency key in a file, so that a test can ask what really happened, however often it was asked.
 *
 *   node examples/recorded-day/acme.mjs [port] [file]
 */
import { createServer } from "node:http";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Starts the server. `file` keeps one JSON line per request: path, key, status, body. */
export async function startAcme({ port = 7390, file }) {
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)) : [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk) => { body += chunk; });
    request.on("end", () => {
      const key = request.headers["idempotency-key"] ?? "";
      const status = statusOf(request.url, lines.filter((line) => line.path === request.url && line.key === key));
      const line = { atMs: Date.now(), path: request.url, key, session: request.headers["x-session-id"], status, body };
      lines.push(line);
      appendFileSync(file, `${JSON.stringify(line)}\n`);
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(status === 200 ? { done: true, path: request.url, ...JSON.parse(body || "{}") } : { error: "the system is down" }));
    });
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** Every request so far, in order. */
    calls: () => [...lines],
    /** Effects by path: distinct keys that were answered 200. */
    effects: (path) => new Set(lines.filter((line) => line.path === path && line.status === 200).map((line) => line.key)).size,
    stop: () => new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); }),
  };
}

function statusOf(path, earlier) {
  if (path === "/orders/ord-1002/route") return 503;
  if (path === "/mails/eml-2002/draft") return earlier.length < 2 ? 503 : 200;
  return 200;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const acme = await startAcme({ port: Number(process.argv[2] ?? 7390), file: process.argv[3] ?? ".docket/acme.jsonl" });
  console.log(`The outside systems of the recorded day answer at ${acme.url}; Ctrl-C stops them.`);
}
