/** Running `docket` in-process, and a gateway that says what a test tells it to. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { runCli } from "../../src/cli/program.js";
import type { CliIo } from "../../src/cli/io.js";

export interface Ran { readonly code: number; readonly out: string; readonly err: string; readonly asked: string[] }
export interface RunOptions { readonly env?: Record<string, string | undefined>; readonly cwd?: string; readonly interactive?: boolean; readonly answer?: string; readonly interrupted?: AbortSignal; /** Lines of a terminal. */ readonly rows?: number; /** Sees what is printed, as it is. */ readonly onOut?: (text: string) => void; readonly onErr?: (text: string) => void }

export async function docket(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
  let out = "", err = "";
  const asked: string[] = [];
  const io: CliIo = {
    env: options.env ?? {}, cwd: options.cwd ?? process.cwd(), interactive: options.interactive ?? false, interrupted: options.interrupted ?? new AbortController().signal,
    rows: () => options.rows,
    out: (text) => { out += text; options.onOut?.(text); }, err: (text) => { err += text; options.onErr?.(text); },
    ask: async (question) => { asked.push(question); return options.answer ?? ""; },
  };
  const code = await runCli(args, io);
  return { code, out, err, asked };
}

/** An outside where nothing is said and nobody is there, for walking the tree of commands. */
export const quietIo = (cwd: string): CliIo => ({ env: {}, cwd, interactive: false, interrupted: new AbortController().signal, rows: () => undefined, out: () => undefined, err: () => undefined, ask: async () => "" });

export interface FakeServer { readonly url: string; readonly requests: { method: string; path: string; headers: IncomingMessage["headers"]; body: string }[]; close(): Promise<void> }

/** Answers every request with `handler`. */
export async function fakeServer(handler: (req: IncomingMessage, res: ServerResponse, body: string) => void): Promise<FakeServer> {
  const requests: FakeServer["requests"] = [];
  const server = createServer((req, res) => {
    let body = "";
    req.on("data", (chunk: Buffer) => { body += chunk.toString(); });
    req.on("end", () => {
      requests.push({ method: req.method ?? "", path: req.url ?? "", headers: req.headers, body });
      handler(req, res, body);
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, requests,
    close: () => new Promise((resolve) => { server.close(() => { resolve(); }); server.closeAllConnections(); }),
  };
}

/** One server-sent event. */
export const sse = (event: string, data: unknown, id?: number): string => `${id === undefined ? "" : `id: ${String(id)}\n`}event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
