/**
 * Owns: bringing what the gateway refused to the console's chained audit (I10). Refusals are collected and published together every few seconds.
 *
 * - Refused requests are cheap to send: each address has some lines a minute, and the rest is counted in one.
 * - What could not be published stays for the next time, as far as the limit goes; what dies with the process is in the log, where each refusal is too.
 */
import { randomUUID } from "node:crypto";
import type { Envelope } from "../contracts/cloudevent.js";
import { REFUSALS_NOTED, type Refusal, type RefusalsNoted } from "../contracts/reports.js";
import type { Clock } from "../platform/clock.js";
import { errorFields, type Logger } from "../platform/log.js";

export interface RefusalBookDeps {
  readonly publish: (envelope: Envelope) => Promise<void>;
  readonly clock: Clock; readonly logger: Logger;
  readonly everyMs?: number; readonly perMinute?: number;
}

type Noted = Omit<Refusal, "refusalId" | "atMs" | "count">;
interface Address { sinceMs: number; lines: number; more: number; last: Noted }

const MINUTE_MS = 60_000;
const MOST_WAITING = 2_000;
const MOST_ADDRESSES = 10_000;
const TOGETHER = 100;

export class RefusalBook {
  readonly #waiting: Refusal[] = [];
  readonly #addresses = new Map<string, Address>();
  readonly #perMinute: number;
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> = Promise.resolve();

  constructor(private readonly deps: RefusalBookDeps) { this.#perMinute = deps.perMinute ?? 20; }

  note(refused: Noted): void {
    const nowMs = this.deps.clock.nowMs();
    const address = this.#addresses.get(refused.ip);
    if (address !== undefined && nowMs - address.sinceMs < MINUTE_MS) {
      address.lines += 1;
      address.last = refused;
      if (address.lines > this.#perMinute) address.more += 1;
      else this.#add(refused);
      return;
    }
    if (address !== undefined) this.#close(address);
    else if (this.#addresses.size >= MOST_ADDRESSES) this.#closeOldest();
    this.#addresses.delete(refused.ip);
    this.#addresses.set(refused.ip, { sinceMs: nowMs, lines: 1, more: 0, last: refused });
    this.#add(refused);
  }

  start(): void {
    this.#timer = setInterval(() => { this.flush().catch((error: unknown) => { this.deps.logger.warn({ waiting: this.#waiting.length, ...errorFields(error) }, "refusals could not be sent to the console; they are sent later"); }); }, this.deps.everyMs ?? 3_000).unref();
  }

  /** Publishes what there is, one after the other. Throws Problem where the broker does not take it; it stays then. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.catch(() => undefined).then(() => this.#send());
    return this.#flushing;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    for (const address of this.#addresses.values()) this.#close(address);
    await this.flush().catch((error: unknown) => { this.deps.logger.warn({ waiting: this.#waiting.length, ...errorFields(error) }, "the last refusals could not be sent to the console; the log has them"); });
  }

  async #send(): Promise<void> {
    const nowMs = this.deps.clock.nowMs();
    for (const [ip, address] of [...this.#addresses]) {
      if (nowMs - address.sinceMs < MINUTE_MS) continue;
      this.#close(address);
      this.#addresses.delete(ip);
    }
    while (this.#waiting.length > 0) {
      const refusals = this.#waiting.slice(0, TOGETHER);
      const data: RefusalsNoted = { app: "gateway", refusals };
      await this.deps.publish({ specversion: "1.0", id: randomUUID(), source: "docket://gateway", type: REFUSALS_NOTED, data: JSON.stringify(data) });
      this.#waiting.splice(0, refusals.length);
    }
  }

  #close(address: Address): void {
    if (address.more > 0) this.#add({ ...address.last, path: "", requestId: "" }, address.more);
    address.more = 0;
  }

  #closeOldest(): void {
    const [oldest] = this.#addresses;
    if (oldest === undefined) return;
    this.#close(oldest[1]);
    this.#addresses.delete(oldest[0]);
  }

  #add(refused: Noted, count?: number): void {
    // The oldest are what an attack began with: they stay.
    if (this.#waiting.length >= MOST_WAITING) return;
    this.#waiting.push({ ...refused, refusalId: randomUUID(), atMs: this.deps.clock.nowMs(), ...(count === undefined ? {} : { count }) });
  }
}
