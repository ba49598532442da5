/** Owns: a TCP proxy in front of a server that is not ours to kill (or is): it cuts, hangs or slows down every connection on demand. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** `cut`: connections break and new ones are refused at once. `hang`: they stay open and nothing gets through. */
export type TcpMode = { readonly do: "pass" } | { readonly do: "cut" } | { readonly do: "hang" } | { readonly do: "delay"; readonly ms: number };

export class TcpProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** What waits for the end of a hang. */
  readonly #held: (() => void)[] = [];
  #mode: TcpMode = { do: "pass" };

  private constructor(private readonly target: { readonly host: string; readonly port: number }) {
    this.#server = createServer((socket) => { this.#take(socket); });
  }

  static async start(target: { readonly host: string; readonly port: number }): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get port(): number { return (this.#server.address() as AddressInfo).port; }

  /** Open connections, both ends counted. */
  get open(): number { return this.#sockets.size; }

  set(mode: TcpMode): void {
    this.#mode = mode;
    if (mode.do === "cut") for (const socket of this.#sockets) socket.destroy();
    if (mode.do === "hang") return;
    for (const go of this.#held.splice(0)) go();
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => { this.#server.close(resolve); });
  }

  #take(client: Socket): void {
    if (this.#mode.do === "cut") { client.destroy(); return; }
    const server = connect(this.target);
    for (const [from, to] of [[client, server], [server, client]] as const) {
      this.#sockets.add(from);
      from.setNoDelay(true);
      from.on("data", (bytes) => { this.#through(() => { if (!to.destroyed) to.write(bytes); }); });
      from.on("error", () => { to.destroy(); });
      from.on("close", () => { this.#sockets.delete(from); to.destroy(); });
    }
  }

  /** In order, whatever the mode: what came later never overtakes what is held or late. */
  #through(write: () => void): void {
    if (this.#mode.do === "hang") this.#held.push(write);
    else if (this.#mode.do === "delay") setTimeout(write, this.#mode.ms);
    else write();
  }
}
