/**
 * Preloaded (`node --import`) into an app whose clock a test moves: wall time is off by as many milliseconds as the file
 * DOCKET_CLOCK_FILE says, read again every 50 ms. Timers keep running as they do when a machine's clock is set.
 */
import { readFileSync } from "node:fs";

const file = process.env.DOCKET_CLOCK_FILE;
const RealDate = Date;
const now = Date.now.bind(Date);
let offsetMs = 0;
let readAtMs = 0;

function shifted() {
  const realMs = now();
  if (realMs - readAtMs > 50) {
    readAtMs = realMs;
    try {
      offsetMs = Number(readFileSync(file, "utf8")) || 0;
    } catch {
      offsetMs = 0;
    }
  }
  return realMs + offsetMs;
}

if (file) {
  globalThis.Date = class Date extends RealDate {
    constructor(...args) {
      if (args.length === 0) super(shifted());
      else super(...args);
    }
    static now() {
      return shifted();
    }
  };
}
