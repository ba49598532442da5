/**
 * Owns: getting a dead letter through a broker whole. Brokers and sidecars take about 1 MB; a letter that carries a large payload
 * as JSON text can be larger, and one that nobody takes would hold up its channel for ever (I14). So it travels compressed, and
 * where even that is too large, cut, with its size and digest. The reader unpacks: what is stored and shown is never compressed.
 */
import { createHash } from "node:crypto";
import { gunzipSync, gzipSync } from "node:zlib";
import type { DeadLetter } from "../contracts/messages.js";

const MAX_LETTER_BYTES = 900 * 1024;
const MAX_UNPACKED_BYTES = 64 * 1024 * 1024;

/** The letter as it may travel. */
export function packed(letter: DeadLetter): DeadLetter {
  if (fits(letter)) return letter;
  const bytes = Buffer.from(letter.payload, letter.payloadEncoding === "base64" ? "base64" : "utf8");
  for (let kept = bytes.length; ; kept = Math.floor(kept / 2)) {
    const parcel: DeadLetter = { ...letter, ...(kept === bytes.length ? {} : { message: `${letter.message.slice(0, 1000)} [${cutNote(bytes, kept)}]` }), payload: gzipSync(bytes.subarray(0, kept)).toString("base64"), payloadEncoding: "gzip" };
    if (fits(parcel) || kept === 0) return parcel;
  }
}

/** The letter as it is kept. One that cannot be unpacked stays as it came. */
export function unpacked(letter: DeadLetter): DeadLetter {
  if (letter.payloadEncoding !== "gzip") return letter;
  try {
    return { ...letter, ...payloadOf(gunzipSync(Buffer.from(letter.payload, "base64"), { maxOutputLength: MAX_UNPACKED_BYTES })) };
  } catch {
    return { ...letter, payloadEncoding: "base64" };
  }
}

/** Bytes as a letter holds them: as text where they are UTF-8. */
export function payloadOf(bytes: Uint8Array): Pick<DeadLetter, "payload" | "payloadEncoding"> {
  try {
    return { payload: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes), payloadEncoding: "utf8" };
  } catch {
    return { payload: Buffer.from(bytes).toString("base64"), payloadEncoding: "base64" };
  }
}

function fits(letter: DeadLetter): boolean { return Buffer.byteLength(JSON.stringify(letter)) <= MAX_LETTER_BYTES; }

function cutNote(bytes: Buffer, kept: number): string {
  return `the payload is cut to ${String(kept)} of ${String(bytes.length)} bytes, sha256 ${createHash("sha256").update(bytes).digest("hex")}`;
}
