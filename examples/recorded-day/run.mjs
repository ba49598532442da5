/**
 * Plays the recorded day against a running `npm run dev` and prints the table: what came in, how it ended, how many
 * model calls and tries it took. Starts the day's outside systems itself.
 *
 *   node examples/recorded-day/run.mjs
 */
import { existsSync, readFileSync } from "node:fs";
import { startAcme } from "./acme.mjs";
import { deliveries } from "./day.mjs";

const dataDir = process.env.DOCKET_DATA_DIR ?? ".docket";
const record = `${dataDir}/run.json`;
if (!existsSync(record)) {
  console.error(`No running stack was found (${record}). Start "npm run dev" in another terminal first.`);
  process.exit(1);
}
const { gatewayUrl, apiKeyFile } = JSON.parse(readFileSync(record, "utf8"));
const headers = { authorization: `Bearer ${readFileSync(apiKeyFile, "utf8").trim()}` };
const acme = await startAcme({ file: `${dataDir}/acme.jsonl` });

const startedAtMs = Date.now();
const accepted = [];
for (const delivery of deliveries) {
  const reply = await fetch(`${gatewayUrl}/v1/events`, { method: "POST", headers: { ...headers, "content-type": "application/cloudevents+json" }, body: JSON.stringify(delivery) });
  const answer = await reply.json();
  if (reply.status !== 202) throw new Error(`${delivery.id} was not accepted: ${reply.status} ${JSON.stringify(answer)}`);
  accepted.push(answer);
}
console.log(`${accepted.length} deliveries accepted. Waiting for them to end (ord-1002 retries with exponential backoff) …`);

const rows = new Map();
const deadline = Date.now() + 120_000;
for (const answer of accepted) {
  for (;;) {
    const outcome = await (await fetch(`${gatewayUrl}/v1/sessions/${encodeURIComponent(answer.sessionId)}/events/${answer.eventKey}`, { headers })).json();
    if (outcome.state === "ended") {
      const session = await (await fetch(`${gatewayUrl}/v1/sessions/${encodeURIComponent(answer.sessionId)}`, { headers })).json();
      rows.set(answer.eventKey, {
        event: answer.eventId, session: answer.sessionId, agent: answer.agent, outcome: outcome.outcome, code: outcome.code ?? "",
        "model calls": session.summary.modelCalls, "requests to the outside": acme.calls().filter((call) => call.session === answer.sessionId).length,
      });
      break;
    }
    if (Date.now() > deadline) throw new Error(`${answer.eventId} did not end within two minutes: ${JSON.stringify(outcome)}`);
    await new Promise((resolve) => { setTimeout(resolve, 250); });
  }
}
console.table([...rows.values()]);
if (acme.calls().every((call) => call.atMs < startedAtMs)) console.log("All of it had been delivered before: every event was recognised, and nothing ran again. A fresh day needs a fresh data folder.");
console.log(`${deliveries.length} deliveries, ${rows.size} ledger rows. See the dead letter of ord-1002 with: npx docket dlq list`);
await acme.stop();
