/**
 * Owns: paths inside a session's workspace. A path is relative, has no `..`, and no part of it is a symbolic link that leads out;
 * what is opened is a regular file with one name. The folder's other inhabitants are tools of the same session.
 */
import { constants } from "node:fs";
import { lstat, open, realpath, type FileHandle } from "node:fs/promises";
import { isAbsolute, join, sep } from "node:path";
import { ToolFailure } from "../../agent/tool-failure.js";

const MAX_DEPTH = 16;

/** The parts of a clean relative path; `.` is the workspace itself (no parts). Throws ToolFailure `permanent`. */
export function partsOf(path: string): string[] {
  if (/[\p{Cc}\\]/u.test(path)) throw refused(path, "it has control characters or backslashes");
  if (isAbsolute(path) || path.startsWith("~")) throw refused(path, "it is not relative to the workspace");
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refused(path, "it leads out of the workspace");
  if (parts.length > MAX_DEPTH || parts.some((part) => Buffer.byteLength(part) > 200)) throw refused(path, "it is too deep or too long");
  return parts;
}

/** The real path of an existing folder below the workspace. Throws ToolFailure. */
export async function folderIn(workspace: string, parts: readonly string[]): Promise<string> {
  const root = await realpath(workspace);
  const asked = join(root, ...parts);
  let real: string;
  try {
    real = await realpath(asked);
  } catch (error) {
    throw ToolFailure.permanent(`the folder ${JSON.stringify(parts.join("/"))} does not exist`, { cause: error });
  }
  // Links that stay inside are refused as well: one rule that is easy to check beats a clever one.
  if (real !== asked) throw refused(parts.join("/"), "a part of it is a symbolic link");
  if (real !== root && !real.startsWith(root + sep)) throw refused(parts.join("/"), "it leads out of the workspace");
  if (!(await lstat(real)).isDirectory()) throw ToolFailure.permanent(`${JSON.stringify(parts.join("/"))} is not a folder`);
  return real;
}

/** Opens an existing regular file for reading. The caller closes it. Throws ToolFailure. */
export async function openFileIn(workspace: string, path: string): Promise<FileHandle> {
  const parts = partsOf(path);
  const name = parts.pop();
  if (name === undefined) throw ToolFailure.permanent(`${JSON.stringify(path)} is a folder`);
  const folder = await folderIn(workspace, parts);
  let file: FileHandle;
  try {
    // NONBLOCK: a pipe must not hang us before it is recognised as one.
    file = await open(join(folder, name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = (error as { code?: string }).code;
    throw code === "ELOOP" ? refused(path, "it is a symbolic link") : ToolFailure.permanent(`${JSON.stringify(path)} cannot be read: ${String(code)}`, { cause: error });
  }
  const stat = await file.stat();
  if (stat.isFile() && stat.nlink === 1) return file;
  await file.close();
  throw refused(path, stat.isFile() ? "it has a second name outside our sight (hard link)" : "it is not a regular file");
}

export function refused(path: string, why: string): ToolFailure {
  return ToolFailure.permanent(`the path ${JSON.stringify(path.slice(0, 200))} is refused: ${why}`);
}
