/** Owns: the shape of `GET /v1/diagnosis` and of what the System page gets. */
import type { AppReport } from "../../../src/contracts/reports.js";

export interface Diagnosis { readonly code: string; readonly tone: "bad" | "info"; readonly title: string; readonly detail: string; readonly fix: string; readonly href?: string }
export type App = AppReport & { readonly receivedAtMs: number; readonly silent: boolean };
