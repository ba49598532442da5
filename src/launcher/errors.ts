/** Owns: the one error shape of the launcher: what failed and with what value, and what to do next. */

export type LauncherErrorCode =
  | "RUN_FILE_INVALID"
  | "RUNTIME_MISSING"
  | "RUNTIME_BUILD_FAILED"
  | "BROKER_MISSING"
  | "BROKER_UNREACHABLE"
  | "PORT_TAKEN"
  | "ALREADY_RUNNING"
  | "NOT_READY"
  | "CHILD_EXITED"
  | "OPTION_INVALID"
  | "CLUSTER_REFUSED";

/** An error meant for the person at the terminal: `message` says what failed and where, `hint` what to do next. */
export class LauncherError extends Error {
  override readonly name = "LauncherError";

  constructor(
    readonly code: LauncherErrorCode,
    message: string,
    readonly hint: string,
    options?: { cause?: unknown },
  ) {
    super(message, options);
  }

  /** The text for a terminal. */
  render(): string {
    return `${this.message}\n  -> ${this.hint.split("\n").join("\n     ")}  [${this.code}]`;
  }
}

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
