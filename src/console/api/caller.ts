/** Owns: remembering, for the life of a request, that a signed-in browser made it. */
import type { Request } from "express";
import type { Authenticated } from "../../platform/apikeys.js";

const callers = new WeakMap<Request, Authenticated>();

export function rememberCaller(req: Request, caller: Authenticated): void { callers.set(req, caller); }

/** Who the request's cookie stands for, where it was authorised by one. */
export function signedInCaller(req: Request): Authenticated | undefined { return callers.get(req); }
