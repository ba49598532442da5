/** Owns: the route that sends a message to a session that exists. */
import { randomUUID } from "node:crypto";
import type { Express } from "express";
import { z } from "zod";
import { BusyMode } from "../../contracts/journal.js";
import { carryMessage } from "../message.js";
import { callerWith, pathId, readBody } from "./access.js";
import { audited, type ApiContext } from "./context.js";
import { viewOf } from "./sessions.js";

/** `eventId`: retries of the same click carry the same id. */
const MessageBody = z.strictObject({ text: z.string().min(1).max(100_000), mode: BusyMode.default("enqueue"), eventId: z.string().min(8).max(100).optional() });

export function messageRoutes(app: Express, context: ApiContext): void {
  const { deps, config } = context;

  app.post("/v1/sessions/:id/messages", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const body = readBody(req, MessageBody);
    const message = { text: body.text, mode: body.mode, eventId: body.eventId ?? randomUUID() };
    const { summary } = await viewOf(context, caller, pathId(req));
    const answer = await audited(context, req, { caller, action: "session.message", target: summary.sessionId, reason: "", detail: { eventId: message.eventId, mode: message.mode, characters: message.text.length } }, async () => {
      const result = await carryMessage(deps, config, { summary, caller }, message);
      return { outcome: result.state, result };
    });
    res.status(answer.state === "unknown" ? 202 : 200).json(answer);
  });
}
