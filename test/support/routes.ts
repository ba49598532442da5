/** The routes that an Express app really has, read from its router, so that a test walks every one and a new one is not forgotten. */
import type { Express } from "express";

interface Layer { readonly route?: { readonly path: string; readonly methods: Readonly<Record<string, boolean>> }; readonly handle?: { readonly stack?: readonly Layer[] } }

/** `POST /v1/things/:id`, in the order of their mounting; routers within included. */
export function routesOf(app: Express): string[] {
  const { stack } = app.router as unknown as { readonly stack: readonly Layer[] };
  return [...new Set(stack.flatMap(within))];
}

/** Those that are no plain reads. */
export function writesOf(app: Express): string[] {
  return routesOf(app).filter((route) => !/^(GET|HEAD|OPTIONS) /.test(route));
}

function within({ route, handle }: Layer): string[] {
  if (route !== undefined) return Object.keys(route.methods).filter((method) => method !== "_all").map((method) => `${method.toUpperCase()} ${route.path}`);
  return handle?.stack?.flatMap(within) ?? [];
}
