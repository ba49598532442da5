/** Path escapes: CWE-22, CWE-59. */
import { execFileSync } from "node:child_process";
import { link, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fileTools } from "../../../src/tools/builtin/files.js";
import { Workspaces } from "../../../src/tools/workspace.js";
import { toolContext } from "../../support/tools/context.js";

let home: string;
let workspace: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "docket-files-"));
  workspace = (await new Workspaces(join(home, "workspaces")).open("default_s-1")).path;
  await writeFile(join(home, "secret.txt"), "canary");
});
afterEach(() => rm(home, { recursive: true, force: true }));

type Args = Record<string, unknown>;
const call = (name: string) => (args: Args, limits?: Parameters<typeof fileTools>[0]): Promise<unknown> => {
  const tool = fileTools(limits).find((found) => found.manifest.name === name)!;
  return tool.run({ offset: 0, maxBytes: 65_536, ...args }, toolContext({ workspace }));
};
const [read, write, list] = [call("file_read"), call("file_write"), call("file_list")];

describe("files of a session", () => {
  it("are written, read in parts, and listed", async () => {
    await write({ path: "notes/day 1.txt", content: "Grüße an alle" });
    expect(await read({ path: "notes/day 1.txt" })).toEqual({ path: "notes/day 1.txt", bytes: 15, content: "Grüße an alle" });
    expect(await read({ path: "./notes//day 1.txt", maxBytes: 7 })).toMatchObject({ content: "Grüße", nextOffset: 7 });
    expect(await read({ path: "notes/day 1.txt", offset: 100 })).toMatchObject({ content: "" });
    expect(await list({ path: "." })).toEqual({ path: ".", entries: [{ name: "notes", type: "folder" }], more: false });
    expect(await list({ path: "notes" })).toMatchObject({ entries: [{ name: "day 1.txt", type: "file", bytes: 15 }] });
  });

  it("writing twice gives the same file and leaves nothing beside it", async () => {
    for (let i = 0; i < 2; i += 1) await write({ path: "a.txt", content: "x" });
    expect(await readdir(workspace)).toEqual(["a.txt"]);
  });

  it("of another session are in another folder; an unsafe actor id is refused", async () => {
    const other = (await new Workspaces(join(home, "workspaces")).open("default_s-2")).path;
    expect(other).not.toBe(workspace);
    await expect(new Workspaces(home).open("../x")).rejects.toMatchObject({ code: "bad_request" });
  });
});

const ESCAPES = ["../secret.txt", "../../secret.txt", "a/../../secret.txt", "/etc/passwd", "~/x", "..", "a/..", "\0", "a\0/../x", "..\\secret.txt", "a\nb", "a/".repeat(40) + "b", "x".repeat(300)];
describe("a path that leads out is refused", () => {
  it.each(ESCAPES)("%j", async (path) => {
    for (const tool of [read, list]) await expect(tool({ path })).rejects.toMatchObject({ reason: "permanent" });
    await expect(write({ path, content: "x" })).rejects.toMatchObject({ reason: "permanent" });
    expect(await readFile(join(home, "secret.txt"), "utf8")).toBe("canary");
  });

  it("names with dots only are names, percent signs are no escapes", async () => {
    await write({ path: "...", content: "x" });
    await write({ path: "%2e%2e%2fsecret.txt", content: "x" });
    expect(await readdir(home)).toEqual(["secret.txt", "workspaces"]);
  });
});

describe("links", () => {
  it("a link to a file outside is not read, and is replaced, not followed, when written", async () => {
    await symlink(join(home, "secret.txt"), join(workspace, "link"));
    await expect(read({ path: "link" })).rejects.toMatchObject({ message: expect.stringContaining("symbolic link") as string });
    await write({ path: "link", content: "mine" });
    expect(await readFile(join(home, "secret.txt"), "utf8")).toBe("canary");
    expect(await read({ path: "link" })).toMatchObject({ content: "mine" });
  });

  it("a link to a folder outside, also halfway, is not entered", async () => {
    await symlink(home, join(workspace, "out"));
    await mkdir(join(workspace, "in"));
    await symlink("../..", join(workspace, "in/up"));
    for (const folder of ["out", "in/up"]) {
      await expect(read({ path: `${folder}/secret.txt` })).rejects.toMatchObject({ reason: "permanent" });
      await expect(list({ path: folder })).rejects.toMatchObject({ reason: "permanent" });
      await expect(write({ path: `${folder}/secret.txt`, content: "x" })).rejects.toMatchObject({ reason: "permanent" });
      await expect(write({ path: `${folder}/new/deep.txt`, content: "x" })).rejects.toMatchObject({ reason: "permanent" });
    }
    expect(await readdir(home)).toEqual(["secret.txt", "workspaces"]);
  });

  it("a link to a folder inside is refused as well", async () => {
    await write({ path: "real/a.txt", content: "x" });
    await symlink("real", join(workspace, "alias"));
    await expect(read({ path: "alias/a.txt" })).rejects.toMatchObject({ message: expect.stringContaining("symbolic link") as string });
    await expect(write({ path: "alias/b.txt", content: "x" })).rejects.toMatchObject({ reason: "permanent" });
  });

  it("a dangling link is not written through", async () => {
    await symlink(join(home, "new.txt"), join(workspace, "dangling"));
    await write({ path: "dangling", content: "x" });
    expect(await readdir(home)).toEqual(["secret.txt", "workspaces"]);
  });

  it("a hard link to a file outside is not read", async () => {
    await link(join(home, "secret.txt"), join(workspace, "hard"));
    await expect(read({ path: "hard" })).rejects.toMatchObject({ message: expect.stringContaining("hard link") as string });
  });

  it("a pipe does not hang the reader, a folder is no file", async () => {
    execFileSync("mkfifo", [join(workspace, "pipe")]);
    await mkdir(join(workspace, "folder"));
    for (const path of ["pipe", "folder", "."]) await expect(read({ path })).rejects.toMatchObject({ reason: "permanent" });
    await expect(write({ path: "folder", content: "x" })).rejects.toMatchObject({ reason: "permanent" });
  });
});

describe("bounds", () => {
  const limits = { maxFileBytes: 100, maxTotalBytes: 250, maxFiles: 4 };
  it("of a file, of all files, of their number", async () => {
    await expect(write({ path: "big", content: "é".repeat(51) }, limits)).rejects.toMatchObject({ reason: "permanent" });
    for (const path of ["a", "b"]) await write({ path, content: "x".repeat(100) }, limits);
    await expect(write({ path: "c", content: "x".repeat(100) }, limits)).rejects.toMatchObject({ message: expect.stringContaining("250") as string });
    for (const path of ["c", "d"]) await write({ path, content: "x" }, limits);
    await expect(write({ path: "e", content: "x" }, limits)).rejects.toMatchObject({ message: expect.stringContaining("4 files") as string });
  });

  it("a long folder is listed in part", async () => {
    await Promise.all(Array.from({ length: 510 }, (_, i) => writeFile(join(workspace, `f${String(i)}`), "")));
    const answer = (await list({ path: "." })) as { entries: unknown[]; more: boolean };
    expect(answer.entries).toHaveLength(500);
    expect(answer.more).toBe(true);
  });
});
