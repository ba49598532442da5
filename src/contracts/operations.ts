/** Owns: what one part of Docket says in its log and another part, or an operator's alert, acts on. */

/** `code` of the line by which a session host says that the scheduler takes reminders and fires none: it has to be started again. */
export const SCHEDULER_SILENT = "scheduler_silent";
