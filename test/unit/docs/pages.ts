/** Reading the documentation for its tests: pages, tables, code. */
import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";

export const ROOT = join(import.meta.dirname, "../../..");

export interface Page { readonly path: string; readonly text: string }

export const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

/** README, CONTRIBUTING and everything below docs/. */
export function pages(): Page[] {
  const docs = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md")).map((file) => join("docs", file));
  return ["README.md", "CONTRIBUTING.md", ...docs].map((path) => ({ path, text: read(path) }));
}

/** Files of a folder with this ending, as one text each. */
export function sources(folder: string, ending: string): Page[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(ending))
    .map((file) => ({ path: relative(ROOT, join(ROOT, folder, file)), text: read(join(folder, file)) }));
}

/** The text of a section, from its heading to the next one of the same or a higher level. */
export function section(text: string, heading: string): string {
  const lines = text.split("\n");
  const start = lines.findIndex((line) => /^#+ /.test(line) && line.replace(/^#+ /, "") === heading);
  if (start < 0) throw new Error(`there is no heading "${heading}"`);
  const level = /^#+/.exec(lines[start] ?? "")?.[0].length ?? 1;
  const end = lines.findIndex((line, at) => at > start && new RegExp(`^#{1,${String(level)}} `).test(line));
  return lines.slice(start, end < 0 ? undefined : end).join("\n");
}

/** Cells of the rows of all tables in a text, heads left out, code marks taken off. */
export function rows(text: string): string[][] {
  const lines = text.split("\n");
  return lines.flatMap((line, at) => {
    if (!line.startsWith("|") || /^\|[\s|:-]+\|$/.test(line) || /^\|[\s|:-]+\|$/.test(lines[at + 1] ?? "")) return [];
    return [line.split(/(?<!\\)\|/).slice(1, -1).map((cell) => cell.trim().replace(/^`([^`]*)`$/, "$1"))];
  });
}

export const firstCells = (text: string): string[] => rows(text).map((row) => row[0] ?? "");
