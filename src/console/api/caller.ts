/** Owns: remembering, for the life of a request, who made it: that a signed-in browser did, and whom a route took it for. */
import type { Request } from "express";
import type { Authenticated } from "../../platform/apikeys.js";

const callers = new WeakMap<Request, Authenticated>();
const taken = new WeakMap<Request, Authenticated>();

export function rememberCaller(req: Request, caller: Authenticated): void { callers.set(req, caller); }

/** Who the request's cookie stands for, where it was authorised by one. */
export function signedInCaller(req: Request): Authenticated | undefined { return callers.get(req); }

/** Notes who was authenticated, whatever comes of the request. */
export function noteCaller(req: Request, caller: Authenticated): void { taken.set(req, caller); }

/** Who made the request, as far as it has been found out. */
export function knownCaller(req: Request): Authenticated | undefined { return taken.get(req) ?? callers.get(req); }
