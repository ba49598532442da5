/**
 * Owns: serving the built pages (`npm run build` puts them into dist/web). Everything is read once at the start and compressed; files
 * below /assets carry a hash in their name and may be cached for ever, the page itself never. A deep link gets the page too.
 */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";
import { gzipSync } from "node:zlib";
import type { Express, Request, RequestHandler, Response } from "express";
import { firstReads, PAGE_NAMES } from "../../contracts/first-reads.js";
import { Problem } from "../../contracts/problems.js";

/** Nothing inline, nothing from elsewhere, no frames, and no script may make markup of a string. */
export const CONTENT_POLICY: Record<string, string[]> = {
  "default-src": ["'none'"], "script-src": ["'self'"], "style-src": ["'self'"], "img-src": ["'self'"], "connect-src": ["'self'"],
  "base-uri": ["'none'"], "form-action": ["'none'"], "frame-ancestors": ["'none'"], "require-trusted-types-for": ["'script'"], "trusted-types": ["'none'"],
};

const TYPES: Readonly<Record<string, string>> = { ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml" };
const PAGE = "/index.html";

/** What `GET /` says to programs: the first parts of the API's routes. */
const ROUTES = [
  "/v1/sessions", "/v1/approvals", "/v1/dead-letters", "/v1/overview", "/v1/diagnosis", "/v1/system", "/v1/costs", "/v1/agents", "/v1/policy", "/v1/notices", "/v1/links", "/v1/views", "/v1/read-model",
  "/v1/audit", "/session", "/hooks/slack", "/healthz", "/metrics",
];

interface Asset { readonly body: Buffer; readonly zipped: Buffer; readonly type: string; readonly etag: string }

/** Serves the pages, where there are any; otherwise `GET /` says what is here. */
export function siteRoutes(app: Express, webDir: string | undefined): void {
  const assets = webDir === undefined || !existsSync(join(webDir, PAGE)) ? new Map<string, Asset>() : readAssets(webDir);
  const page = assets.get(PAGE);
  app.get("/assets/{*path}", (req, res, next) => {
    const asset = assets.get(req.path);
    if (asset === undefined) { next(); return; }
    send(req, res, asset, "public, max-age=31536000, immutable");
  });
  app.get("/", (req, res, next) => {
    if (page !== undefined && asksForPage(req)) { next(); return; }
    res.json({ name: "docket console", documentation: "docs/console.md", routes: ROUTES, ...(page === undefined ? { hint: "npm run build makes the web pages" } : {}) });
  });
  if (page !== undefined) app.use(deepLinks(page));
}

function deepLinks(page: Asset): RequestHandler {
  return (req, res, next) => {
    if ((req.method !== "GET" && req.method !== "HEAD") || /^\/(v1|session|assets|healthz)(\/|$)/.test(req.path)) { next(); return; }
    const isPage = PAGES.test(req.path);
    // Whoever takes anything gets the page where there is one: a link that was sent to somebody is opened by all kinds of programs.
    if (!asksForPage(req) && !(isPage && req.accepts("html") !== false)) {
      next(isPage ? new Problem("not_found", `${req.path} is a page for people, and this request takes no HTML`, { hint: "ask with Accept: text/html, or use the API below /v1" }) : undefined);
      return;
    }
    // What the page asks for first is on its way while the browser still reads the script.
    const first = firstReads(req.path, new URLSearchParams(req.originalUrl.split("?")[1] ?? ""));
    res.setHeader("link", first.map((path) => `<${path}>; rel=preload; as=fetch; crossorigin`).join(", "));
    send(req, res, page, "no-cache");
  };
}

const PAGES = new RegExp(`^/(${PAGE_NAMES.join("|")})(/|$)`);

function asksForPage(req: Request): boolean { return (req.header("accept") ?? "").includes("text/html"); }

function send(req: Request, res: Response, asset: Asset, caching: string): void {
  res.setHeader("cache-control", caching).setHeader("etag", asset.etag).setHeader("vary", "accept-encoding").setHeader("content-type", asset.type);
  if (req.header("if-none-match") === asset.etag) { res.status(304).end(); return; }
  if (!/\bgzip\b/.test(req.header("accept-encoding") ?? "")) { res.end(asset.body); return; }
  res.setHeader("content-encoding", "gzip").end(asset.zipped);
}

function readAssets(dir: string): Map<string, Asset> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(files.map((file) => {
    const body = readFileSync(file);
    const etag = `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`;
    return [`/${relative(dir, file).split(sep).join("/")}`, { body, zipped: gzipSync(body, { level: 9 }), type: TYPES[extname(file)] ?? "application/octet-stream", etag }];
  }));
}
