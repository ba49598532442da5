/**
 * Owns: replacing one copy of an app after the other as an orchestrator does it, what stands before the gateways meanwhile, and people who
 * talk to their sessions all the time and repeat nothing.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { Agent, request } from "undici";
import { Accepted } from "../../src/contracts/api.js";
import { freshSession, type Docket } from "./docket.js";
import { eventually } from "./cluster.js";

/** A person reads the answer before the next question, and stays below the limit of requests. */
const PAUSE_MS = 500;

/** What stands before the gateways: each request goes to the next one in rotation, once. */
export class Balancer {
  readonly #server: Server;
  readonly #agent = new Agent({ connections: 64 });
  readonly #open = new Map<string, number>();
  readonly #rotation: string[];
  #next = 0;

  constructor(urls: readonly string[]) {
    this.#rotation = [...urls];
    this.#server = createServer((req, res) => { void this.#pass(req, res); });
  }

  async listen(): Promise<string> {
    await new Promise<void>((done) => { this.#server.listen(0, "127.0.0.1", done); });
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** Resolves when nothing that went there is unanswered. */
  async takeOut(url: string): Promise<void> {
    this.#rotation.splice(this.#rotation.indexOf(url), 1);
    await eventually(`${url} has answered everything`, () => ((this.#open.get(url) ?? 0) === 0 ? true : undefined));
  }

  putBack(url: string): void { this.#rotation.push(url); }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await this.#agent.destroy();
  }

  async #pass(req: IncomingMessage, res: ServerResponse): Promise<void> {
    this.#next += 1;
    const url = this.#rotation[this.#next % this.#rotation.length] ?? "";
    this.#open.set(url, (this.#open.get(url) ?? 0) + 1);
    try {
      const body: Buffer[] = [];
      for await (const chunk of req) body.push(chunk as Buffer);
      const { authorization = "" } = req.headers;
      const reply = await request(`${url}${req.url ?? "/"}`, {
        dispatcher: this.#agent, method: req.method as "GET" | "POST", headers: { authorization, "content-type": "application/json" }, body: body.length === 0 ? null : Buffer.concat(body),
      });
      res.writeHead(reply.statusCode, { "content-type": String(reply.headers["content-type"]) }).end(await reply.body.text());
    } catch (error) {
      res.writeHead(502).end(String(error));
    } finally {
      this.#open.set(url, (this.#open.get(url) ?? 1) - 1);
    }
  }
}

/** The app is asked to end, then its sidecar, which outlives it (block-shutdown in k8s/), and both start again; resolves when they are ready. */
export async function restartPolitely(stack: Docket["test"]["stack"], copy: string): Promise<void> {
  const both = [copy, `${copy}-daprd`];
  for (const process of both) await stack.kill(process, "SIGTERM");
  await Promise.all(both.map((process) => stack.start(process)));
  await stack.waitReady();
}

/** `restartPolitely`; a gateway leaves the balancer before. */
export async function replaceCopy(docket: Docket, balancer: Balancer, copy: string): Promise<void> {
  const { stack } = docket.test;
  const isGateway = copy.startsWith("gateway");
  if (isGateway) await balancer.takeOut(urlOf(docket, copy));
  await restartPolitely(stack, copy);
  if (isGateway) balancer.putBack(urlOf(docket, copy));
}

/** Address of one copy of the gateway. */
export function urlOf(docket: Docket, gateway: string): string {
  return `http://127.0.0.1:${docket.test.stack.envOf(gateway)["DOCKET_PUBLIC_PORT"] ?? ""}`;
}

export interface Talk { readonly id: string; readonly sent: readonly Accepted[] }

export interface Talking {
  readonly failed: readonly string[];
  /** Resolves when everybody has asked once more from now on, and has the answer. */
  readonly onceMore: () => Promise<void>;
  readonly stop: () => Promise<Talk[]>;
}

/** Talks until it is told to stop, one session for each key. */
export function startTalking(base: string, keys: readonly string[], options: { readonly prefix: string; readonly agent?: string }): Talking {
  const failed: string[] = [];
  const asked = keys.map(() => 0);
  const answered = keys.map(() => 0);
  let talking = true;
  const askAs = (key: string) => async (method: "GET" | "POST", path: string, body?: object): Promise<unknown> => {
    const reply = await fetch(`${base}${path}`, { method, headers: { authorization: `Bearer ${key}` }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const text = await reply.text();
    // A stream's text is its events, which nobody reads here: it is over when the run is.
    if (reply.ok && reply.headers.get("content-type")?.startsWith("text/event-stream") === true) return undefined;
    if (!reply.ok) failed.push(`${method} ${path}: ${String(reply.status)} ${text.slice(0, 400)}`);
    return reply.ok ? JSON.parse(text) : undefined;
  };
  const talks = keys.map(async (key, who): Promise<Talk> => {
    const ask = askAs(key);
    const id = freshSession(options.prefix);
    const sent: Accepted[] = [];
    while (talking || sent.length < 2) {
      asked[who] = sent.length + 1;
      const accepted = Accepted.safeParse(await ask("POST", `/v1/sessions/${id}/events`, { text: `number ${String(sent.length)}`, ...(options.agent === undefined ? {} : { agent: options.agent }) })).data;
      if (accepted === undefined) break; // it is in `failed`
      sent.push(accepted);
      await ask("GET", accepted.links.stream);
      const outcome = await ask("GET", accepted.links.outcome ?? "") as { state?: unknown; outcome?: unknown } | undefined;
      if (outcome?.state !== "ended" || outcome.outcome !== "completed") failed.push(`event ${accepted.eventId}: ${JSON.stringify(outcome)}`);
      answered[who] = sent.length;
      await pause(PAUSE_MS);
    }
    return { id, sent };
  });
  return {
    failed, stop: async () => { talking = false; return await Promise.all(talks); },
    onceMore: async () => {
      const before = [...asked];
      await eventually("everybody has asked once more and has the answer", () => (before.every((count, who) => (answered[who] ?? 0) > count) || failed.length > 0 ? true : undefined), 60_000);
    },
  };
}
