/**
 * Owns: what every HTTP provider does to the neutral transcript before it writes its own: ids that any provider takes,
 * and arguments that are a JSON object whatever the model once wrote (a server that refuses the history would poison
 * the session for ever).
 */
import { sha256Hex } from "../contracts/ids.js";
import { parseLossless } from "../contracts/json.js";

/** Ids go from one provider to another when an agent's model is changed; OpenAI takes 40 characters, Anthropic [A-Za-z0-9_-]. */
export function wireCallId(id: string): string {
  return /^[A-Za-z0-9_-]{1,40}$/.test(id) ? id : `id_${sha256Hex(id).slice(0, 32)}`;
}

/** Arguments as a losslessly parsed object. What is not a JSON object goes back to the model as text under `unparsed_arguments`. */
export function argumentObject(args: string): Record<string, unknown> {
  try {
    const value = parseLossless(args === "" ? "{}" : args);
    if (isObject(value)) return value;
  } catch {
    // Told to the model as text, below.
  }
  return { unparsed_arguments: args };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.getPrototypeOf(value) === Object.prototype;
}

/** Hands deltas on. A listener that throws loses its deltas, not the model call (the live topic may be lossy). */
export class DeltaSink {
  text = "";
  #listener: ((text: string) => void) | undefined;

  constructor(listener: ((text: string) => void) | undefined) {
    this.#listener = listener;
  }

  push(delta: string): void {
    if (delta === "") return;
    this.text += delta;
    try {
      this.#listener?.(delta);
    } catch {
      this.#listener = undefined;
    }
  }
}
