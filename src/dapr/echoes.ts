/** Owns: `canary:<host>` in the session store: the latest of a host's canaries whose tick came to another host. Structural adapter of the session host's `Echoes`. */
import { z } from "zod";
import type { DaprState } from "./state.js";

const Echo = z.object({ serial: z.number().int() });
/** A host that is gone needs no word any more. */
const TTL_SECONDS = 3600;

export class DaprEchoes {
  constructor(private readonly state: DaprState) {}

  async say(host: string, serial: number): Promise<void> {
    await this.state.transact([{ op: "put", key: keyOf(host), value: JSON.stringify({ serial }), ttlSeconds: TTL_SECONDS }]);
  }

  async heard(host: string): Promise<number> {
    const item = await this.state.get(keyOf(host));
    return item === undefined ? 0 : Echo.parse(JSON.parse(item.value)).serial;
  }
}

function keyOf(host: string): string { return `canary:${host}`; }
