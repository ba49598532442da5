/**
 * Owns: reading and changing an app's log level over the sidecar-facing listener, with the app token that only the sidecar and the operator
 * hold. What comes through the sidecar from another app is refused: it would carry the same token.
 */
import express, { type Express, type Request, type Response } from "express";
import { z } from "zod";
import { DEFAULT_FOR_MS, LOG_LEVELS, MAX_FOR_MS, type LogLevelSwitch } from "../platform/log-level.js";

const Asked = z.strictObject({ level: z.enum(LOG_LEVELS), forMs: z.number().int().min(1000).max(MAX_FOR_MS).default(DEFAULT_FOR_MS) });
/** Headers that daprd adds to what one app asks of another. */
const FROM_ANOTHER_APP = ["dapr-caller-app-id", "dapr-callee-app-id"];

/** `GET`, `PUT {level, forMs}` and `DELETE` (back to the configured one) of `/log-level`. */
export function logLevelRoutes(app: Express, level: LogLevelSwitch): void {
  const own = (answer: (req: Request, res: Response) => void) => (req: Request, res: Response): void => {
    if (FROM_ANOTHER_APP.some((name) => req.header(name) !== undefined)) res.status(403).json({ error: "the log level is changed at the app itself, not through a sidecar" });
    else answer(req, res);
  };
  app.get("/log-level", own((_req, res) => { res.json(level.state()); }));
  app.delete("/log-level", own((_req, res) => { res.json(level.reset()); }));
  app.put("/log-level", express.json({ limit: "1kb" }), own((req, res) => {
    const asked = Asked.safeParse(req.body);
    if (!asked.success) res.status(400).json({ error: `expected {"level": one of ${LOG_LEVELS.join(", ")}, "forMs": 1000 to ${String(MAX_FOR_MS)}}: ${asked.error.issues.map((issue) => `${issue.path.map(String).join(".")}: ${issue.message}`).join("; ")}` });
    else res.json(level.set(asked.data.level, asked.data.forMs));
  }));
}
