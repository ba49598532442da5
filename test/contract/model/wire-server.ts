/**
 * Owns: an HTTP server on a free loopback port that answers what it is told, byte by byte as a provider would: in pieces
 * that end anywhere, also inside a character, and broken off as networks do.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Reply {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
  /** `reset`: the socket is reset once `cut` is called (a reset takes with it what the client has not read); `stall`: it stays open and silent. */
  readonly then: "end" | "reset" | "stall";
}

export interface Recorded { readonly path: string; readonly headers: IncomingMessage["headers"]; readonly body: string }

export class WireServer {
  readonly requests: Recorded[] = [];
  #next: Reply | undefined;
  #cut: () => void = () => undefined;
  readonly #server: Server;
  readonly #pieceBytes: number;

  private constructor(pieceBytes: number) {
    this.#pieceBytes = pieceBytes;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(pieceBytes = 13): Promise<WireServer> {
    const server = new WireServer(pieceBytes);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  reply(reply: Reply): void {
    this.#next = reply;
  }

  /** Resets the connection of a `reset` reply. */
  cut(): void {
    this.#cut();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    this.requests.push({ path: request.url ?? "", headers: request.headers, body: Buffer.concat(pieces).toString("utf8") });
    const reply = this.#next ?? { status: 599, body: "nothing was staged", then: "end" as const };
    this.#next = undefined;
    response.writeHead(reply.status, { "content-type": reply.status === 200 ? "text/event-stream; charset=utf-8" : "application/json", ...reply.headers });
    response.flushHeaders();
    if (reply.then === "reset") this.#cut = () => response.socket?.resetAndDestroy();
    await this.#send(response, Buffer.from(reply.body));
    if (reply.then === "end") response.end();
  }

  async #send(response: ServerResponse, bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !response.destroyed; at += this.#pieceBytes) {
      await new Promise<void>((resolve) => { response.write(bytes.subarray(at, at + this.#pieceBytes), () => resolve()); });
    }
  }
}
