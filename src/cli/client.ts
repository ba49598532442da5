/** Owns: HTTP from the CLI: one request, its answer checked against its schema, its failure as a CliError. */
import { z } from "zod";
import { ProblemDocument } from "../contracts/problems.js";
import { CliError, EXIT, exitCodeOf } from "./exit.js";

export interface Client {
  get<T>(path: string, schema: z.ZodType<T>): Promise<T>;
  post<T>(path: string, body: unknown, schema: z.ZodType<T>, headers?: Record<string, string>): Promise<{ status: number; body: T }>;
  remove(path: string): Promise<void>;
  /** An open answer, for streams. Throws CliError for anything but 2xx. */
  open(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Response>;
}

type Init = Omit<RequestInit, "headers"> & { readonly headers: Readonly<Record<string, string>> };
export interface ClientOptions { readonly url: string; readonly name: string; readonly apiKey: string | undefined; readonly timeoutMs: number; readonly interrupted: AbortSignal }

export function createClient(options: ClientOptions): Client {
  const { url, name, timeoutMs, interrupted } = options;
  const common: Record<string, string> = { accept: "application/json", "user-agent": "docket-cli/1", ...(options.apiKey === undefined ? {} : { authorization: `Bearer ${options.apiKey}` }) };
  const request = async (path: string, init: Init): Promise<Response> => {
    try {
      return await fetch(`${url}${path}`, { ...init, redirect: "error", headers: { ...common, ...init.headers } });
    } catch (error) {
      throw failureOf(error, interrupted, `${name} at ${url}`);
    }
  };
  const answerOf = async (path: string, init: Init): Promise<{ status: number; text: string }> => {
    const response = await request(path, { ...init, signal: AbortSignal.any([interrupted, AbortSignal.timeout(timeoutMs)]) });
    let text: string;
    try {
      text = await response.text();
    } catch (error) {
      throw failureOf(error, interrupted, `${name} at ${url}`);
    }
    if (!response.ok) throw problemOf(response, text, name);
    return { status: response.status, text };
  };
  const call = async <T>(path: string, init: Init, schema: z.ZodType<T>): Promise<{ status: number; body: T }> => {
    const { status, text } = await answerOf(path, init);
    return { status, body: readAnswer(text, schema, `${name} ${path}`) };
  };
  return {
    get: async (path, schema) => (await call(path, { method: "GET", headers: {} }, schema)).body,
    post: (path, body, schema, headers = {}) => call(path, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", ...headers } }, schema),
    async remove(path) { await answerOf(path, { method: "DELETE", headers: {} }); },
    async open(path, headers, signal) {
      const response = await request(path, { method: "GET", headers: { ...headers, accept: "text/event-stream" }, signal });
      if (!response.ok) throw problemOf(response, await response.text().catch(() => ""), name);
      return response;
    },
  };
}

/** Why a request got no answer. */
export function failureOf(error: unknown, interrupted: AbortSignal, where: string): CliError {
  if (error instanceof CliError) return error;
  if (interrupted.aborted) return new CliError(EXIT.interrupted, "interrupted", "interrupted");
  if (error instanceof Error && error.name === "TimeoutError") return new CliError(EXIT.timeout, "timeout", `${where} did not answer in time`, "a longer --timeout, or docket doctor");
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const reason = cause instanceof Error && cause.message !== "" ? cause.message : error instanceof Error ? error.message : String(error);
  return new CliError(EXIT.unreachable, "unreachable", `${where} cannot be reached: ${reason}`, "is it running? npm run dev starts everything; docket doctor says what is wrong");
}

function problemOf(response: Response, text: string, name: string): CliError {
  const parsed = ProblemDocument.safeParse(jsonOf(text));
  if (!parsed.success) return new CliError(exitCodeOf({ status: response.status, code: "" }), `http_${String(response.status)}`, `${name} answered ${String(response.status)} without a problem document`, "is this the right URL?");
  const { detail, hint, code, errors } = parsed.data;
  const more = (errors ?? []).slice(0, 5).map((e) => `  ${e.path}: ${e.message}`).join("\n");
  const key = code === "unauthenticated" ? "set DOCKET_API_KEY, or run this where `npm run dev` runs" : undefined;
  return new CliError(exitCodeOf(parsed.data), code, more === "" ? detail : `${detail}\n${more}`, key ?? hint, parsed.data);
}

function readAnswer<T>(text: string, schema: z.ZodType<T>, where: string): T {
  const parsed = schema.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data;
  throw new CliError(EXIT.failed, "unexpected_answer", `${where} gave an answer that this CLI does not understand: ${z.prettifyError(parsed.error)}`, "are CLI and server of the same version?");
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
