/** Owns: how commands end. The exit codes are an interface: scripts depend on them (docs/cli.md). */
import type { ProblemDocument } from "../contracts/problems.js";

export const EXIT = {
  ok: 0, failed: 1, usage: 2, notFound: 3, conflict: 4, notAllowed: 5, invalid: 6, unreachable: 7,
  /** It worked, and what it found is not what was hoped for: a run that failed, a doctor with findings. */
  negative: 8,
  /** The event was accepted and no session took it: it is in the dead letters. */
  deadLettered: 9, timeout: 124, interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** An expected end of a command: one line what, one line hint, a code to search for. */
export class CliError extends Error {
  constructor(readonly exitCode: ExitCode, readonly code: string, message: string, readonly hint?: string, readonly document?: ProblemDocument) {
    super(message);
    this.name = "CliError";
  }
}

/** The exit code for a problem document. */
export function exitCodeOf(problem: Pick<ProblemDocument, "status" | "code">): ExitCode {
  if (problem.code === "not_known_yet") return EXIT.timeout;
  switch (problem.status) {
    case 404: return EXIT.notFound;
    case 409: case 410: return EXIT.conflict;
    case 401: case 403: return EXIT.notAllowed;
    case 400: case 413: case 422: return EXIT.invalid;
    case 502: case 503: case 504: return EXIT.unreachable;
    default: return EXIT.failed;
  }
}
