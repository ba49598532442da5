/** Owns: `file_read`, `file_list` and `file_write` in the session's workspace, with bounds on every size (I9). */
import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { lstat, mkdir, open, readdir, realpath, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { defineTool } from "../../agent/define-tool.js";
import type { Tool } from "../../agent/definition.js";
import { ToolFailure } from "../../agent/tool-failure.js";
import { folderIn, openFileIn, partsOf, refused } from "./paths.js";

export interface FileLimits { readonly maxFileBytes: number; readonly maxTotalBytes: number; readonly maxFiles: number }
const LIMITS: FileLimits = { maxFileBytes: 1024 * 1024, maxTotalBytes: 64 * 1024 * 1024, maxFiles: 1000 };
const MAX_READ_BYTES = 64 * 1024;
const MAX_ENTRIES = 500;

const Path = z.string().min(1).max(1000).describe("Path relative to the session's workspace.");

export function fileTools(limits: FileLimits = LIMITS): Tool[] {
  return [
    defineTool({
      name: "file_read", title: "Read a file", effects: "none", outputCapBytes: 2 * MAX_READ_BYTES,
      description: "Reads a text file of this session's workspace. Large files come in parts: go on at `nextOffset`.",
      input: z.object({ path: Path, offset: z.int().min(0).default(0), maxBytes: z.int().min(1).max(MAX_READ_BYTES).default(MAX_READ_BYTES) }),
      run: async ({ path, offset, maxBytes }, context) => readPart(context.workspace, path, offset, maxBytes),
    }),
    defineTool({
      name: "file_list", title: "List files", effects: "none",
      description: "Lists the files and folders in one folder of this session's workspace.",
      input: z.object({ path: z.string().max(1000).default(".").describe("Folder relative to the session's workspace.") }),
      run: async ({ path }, context) => list(context.workspace, path),
    }),
    defineTool({
      name: "file_write", title: "Write a file", effects: "idempotent",
      description: "Writes a whole text file into this session's workspace, replacing what was there. Folders are made as needed.",
      input: z.object({ path: Path, content: z.string().max(limits.maxFileBytes) }),
      run: async ({ path, content }, context) => writeWhole(context.workspace, path, content, limits),
    }),
  ];
}

async function readPart(workspace: string, path: string, offset: number, maxBytes: number): Promise<unknown> {
  const file = await openFileIn(workspace, path);
  try {
    const { size } = await file.stat();
    const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, offset);
    const end = offset + bytesRead;
    return { path, bytes: size, content: buffer.subarray(0, bytesRead).toString("utf8"), ...(end < size ? { nextOffset: end } : {}) };
  } finally {
    await file.close();
  }
}

async function list(workspace: string, path: string): Promise<unknown> {
  const folder = await folderIn(workspace, partsOf(path));
  const entries = (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
  const shown = await Promise.all(entries.slice(0, MAX_ENTRIES).map(async (entry) => ({
    name: entry.name,
    type: entry.isDirectory() ? "folder" : entry.isFile() ? "file" : "other",
    ...(entry.isFile() ? { bytes: (await lstat(join(folder, entry.name))).size } : {}),
  })));
  return { path, entries: shown, more: entries.length > MAX_ENTRIES };
}

/** Written beside and renamed: a reader sees the old file or the new one, and a link of that name is replaced, not followed. */
async function writeWhole(workspace: string, path: string, content: string, limits: FileLimits): Promise<unknown> {
  const bytes = Buffer.byteLength(content);
  if (bytes > limits.maxFileBytes) throw ToolFailure.permanent(`the file would have ${String(bytes)} bytes; the limit is ${String(limits.maxFileBytes)}`);
  const parts = partsOf(path);
  const name = parts.pop();
  if (name === undefined) throw refused(path, "it is a folder");
  const root = await realpath(workspace);
  await checkQuota(root, bytes, limits);
  const folder = await makeFolders(root, parts);
  if ((await lstat(join(folder, name)).catch(() => undefined))?.isDirectory() === true) throw refused(path, "it is a folder");
  const draft = join(root, `.${randomUUID()}.tmp`);
  try {
    const file = await open(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      await file.writeFile(content);
    } finally {
      await file.close();
    }
    await folderIn(root, parts);
    await rename(draft, join(folder, name));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  return { path, bytes };
}

/** One by one, each checked before the next: a link in the way is refused, not followed. */
async function makeFolders(root: string, parts: readonly string[]): Promise<string> {
  let folder = root;
  for (let depth = 1; depth <= parts.length; depth += 1) {
    await mkdir(join(folder, parts[depth - 1] ?? ""), { mode: 0o700 }).catch((error: unknown) => {
      if ((error as { code?: string }).code !== "EEXIST") throw error;
    });
    folder = await folderIn(root, parts.slice(0, depth));
  }
  return folder;
}

async function checkQuota(root: string, addedBytes: number, limits: FileLimits): Promise<void> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  if (entries.length >= limits.maxFiles) throw ToolFailure.permanent(`the workspace holds ${String(entries.length)} files; the limit is ${String(limits.maxFiles)}`);
  let total = addedBytes;
  for (const entry of entries) if (entry.isFile()) total += (await lstat(join(entry.parentPath, entry.name))).size;
  if (total > limits.maxTotalBytes) throw ToolFailure.permanent(`the workspace would hold ${String(total)} bytes; the limit is ${String(limits.maxTotalBytes)}`);
}
