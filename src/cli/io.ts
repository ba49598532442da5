/** Owns: the outside of a command as a port, so that tests run commands in-process: streams, environment, questions, Ctrl-C. */
import { createInterface } from "node:readline/promises";

export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  /** A person is there to answer and to watch. */
  readonly interactive: boolean;
  /** Data. */
  out(text: string): void;
  /** Talk. */
  err(text: string): void;
  /** One line from the person. */
  ask(question: string): Promise<string>;
  /** Lines of the terminal that data goes to; undefined where it is none. */
  rows(): number | undefined;
  /** Fires on Ctrl-C. */
  readonly interrupted: AbortSignal;
}

export function processIo(): CliIo {
  const interrupt = new AbortController();
  // Whatever is still going on has a moment to end its line and to give the screen back; a second Ctrl-C ends the process by itself.
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      interrupt.abort();
      setTimeout(() => process.exit(130), 1_000).unref();
    });
  }
  // A reader that went away (`| head`) is no failure.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => { process.exit(error.code === "EPIPE" ? 0 : 1); });
  return {
    env: process.env, cwd: process.cwd(), interactive: process.stdin.isTTY && process.stdout.isTTY,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    rows: () => process.stdout.isTTY ? process.stdout.rows : undefined,
    interrupted: interrupt.signal,
    async ask(question) {
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      try {
        return await lines.question(question, { signal: interrupt.signal });
      } finally {
        lines.close();
      }
    },
  };
}
