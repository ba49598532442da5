/** A small SSE client over node:http that can be cut at any event. */
import { request, type IncomingMessage } from "node:http";
import { createParser } from "eventsource-parser";

export interface SseMessage { readonly event: string; readonly id: string | undefined; readonly data: unknown }

export interface SseRun {
  readonly status: number;
  readonly messages: SseMessage[];
  readonly comments: number;
  readonly raw: string;
  /** `ended` by the server, `cut` by us or by a destroyed connection. */
  readonly over: "ended" | "cut";
}

export interface SseOptions {
  readonly key: string;
  readonly lastEventId?: string;
  /** Cuts the connection when this says so. */
  readonly cutWhen?: (messages: readonly SseMessage[]) => boolean;
  /** Cuts it at the so-manieth comment (a heartbeat is one). */
  readonly cutAfterComments?: number;
  readonly onMessage?: (message: SseMessage) => void;
  readonly onOpen?: (res: IncomingMessage) => void;
  readonly timeoutMs?: number;
}

/** Reads a stream until it ends, is cut, or the time is over. */
export function readStream(url: string, options: SseOptions): Promise<SseRun> {
  return new Promise((resolve, reject) => {
    const messages: SseMessage[] = [];
    let comments = 0;
    let raw = "";
    const headers = { authorization: `Bearer ${options.key}`, ...(options.lastEventId === undefined ? {} : { "last-event-id": options.lastEventId }) };
    const req = request(url, { headers }, (res) => {
      options.onOpen?.(res);
      let over = false;
      const finish = (how: SseRun["over"]): void => {
        if (over) return;
        over = true;
        clearTimeout(timer);
        req.destroy();
        resolve({ status: res.statusCode ?? 0, messages, comments, raw, over: how });
      };
      const timer = setTimeout(() => { finish("cut"); }, options.timeoutMs ?? 15_000);
      const parser = createParser({
        onEvent: (event) => {
          if (over) return;
          const message = { event: event.event ?? "message", id: event.id, data: JSON.parse(event.data) as unknown };
          messages.push(message);
          options.onMessage?.(message);
          if (options.cutWhen?.(messages) === true) finish("cut");
        },
        onComment: () => {
          if (over) return;
          comments += 1;
          if (comments === options.cutAfterComments) finish("cut");
        },
      });
      res.setEncoding("utf8");
      res.on("data", (chunk: string) => { raw += chunk; if (!over && res.statusCode === 200) parser.feed(chunk); });
      res.on("end", () => { finish("ended"); });
      res.on("error", () => { finish("cut"); });
      res.on("close", () => { finish("cut"); });
    });
    req.on("error", (error) => { reject(error); });
    req.end();
  });
}
