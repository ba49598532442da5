/** A redrive's number stands for one payload: the session takes a number once, so another payload under it would be answered with success and do nothing. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "better-sqlite3";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { Problem } from "../../../src/contracts/problems.js";
import { ConsoleConfig } from "../../../src/console/config.js";
import { forgetOld } from "../../../src/console/read-model/retention.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { docket } from "../../support/cli-fakes.js";
import { startConsole, type ConsoleWorld } from "../../support/console-fakes.js";
import { event, lettersIn } from "../../support/console-letters.js";

let dir: string;
let database: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
let operator: string, viewer: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-redrive-numbers-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));
let serial = 0;
beforeEach(async () => {
  serial += 1;
  database = join(dir, `used-${String(serial)}.db`);
  world = await startConsole(keys, { database });
  [operator, viewer] = [world.key(["operator"], { id: "otto" }), world.key(["viewer"])];
});
afterEach(() => world.close());

const { dead, one, many, commands } = lettersIn(() => world, () => operator);
const edit = (total: number): string => serializeEnvelope(event("mended", { data: `{"total":${String(total)}}` }));
const rows = async (id: string) => ((await world.call("GET", "/v1/audit", { key: world.key(["admin"]) })).body["items"] as { target: string; outcome: string }[]).filter((row) => row.target === id).map((row) => row.outcome).reverse();
const ann = (): string => world.key(["admin"], { id: "ann" });
const bob = (): string => world.key(["admin"], { id: "bob" });

describe("a number that was used", () => {
  it.each<[string, object, object, string]>([
    ["edited, after it was sent as it was", {}, { payload: edit(7) }, "with the payload of the letter; an edited payload under"],
    ["edited otherwise", { payload: edit(7) }, { payload: edit(8) }, "with an edited payload; another edited payload under"],
    ["as it was, after it was sent edited", { payload: edit(7) }, {}, "with an edited payload; the payload of the letter under"],
  ])("is refused for another content: %s", async (_name, first, second, said) => {
    const id = await dead();
    expect(await one(id, first, ann())).toMatchObject({ status: 202, body: { redrive: 1 } });
    const madeAt = new Date(world.clock.ms).toISOString();
    world.clock.ms += 60_000;
    for (const dryRun of [true, false]) {
      expect(await one(id, { ...second, redrive: 1, dryRun }, bob())).toMatchObject({ status: 409, body: {
        code: "already_redriven", detail: `redrive 1 of dead letter ${id} was made by ann at ${madeAt}, ${said} the same number would have no effect, and nothing was sent`, hint: expect.stringContaining(`docket dlq redrive ${id} --redrive 2`) as string,
      } });
    }
    expect(world.tasks.sent).toHaveLength(1);
    expect(await rows(id)).toEqual(["requested", "redriven", "requested", "already_redriven"]);
    // The twins: the very same again, and the other content under the next number.
    expect(await one(id, { ...first, redrive: 1 }, bob())).toMatchObject({ status: 202, body: { redrive: 1, eventId: `redrive:${id}:1` } });
    expect(await one(id, { ...second, redrive: 2 }, bob())).toMatchObject({ status: 202, body: { redrive: 2, eventId: `redrive:${id}:2` } });
    expect(await one(id, { ...second, redrive: 1 }, ann()), "who made it first stays").toMatchObject({ body: { detail: expect.stringContaining("made by ann") as string, hint: expect.stringContaining("--redrive 3") as string } });
  });

  it("by two people at once with other payloads: one of them is sent, the other one told", async () => {
    const id = await dead();
    const answers = await Promise.all([one(id, { payload: edit(1), redrive: 1 }, ann()), one(id, { payload: edit(2), redrive: 1 }, bob()), one(id, { payload: edit(1), redrive: 1 }, bob())]);
    const total = answers[1].status === 202 ? 2 : 1;
    expect(answers.map(({ status }) => status), "whoever came first").toEqual(total === 1 ? [202, 409, 202] : [409, 202, 409]);
    expect(new Set(commands().map((command) => JSON.stringify((JSON.parse(command.event) as { data: unknown }).data)))).toEqual(new Set([`{"total":${String(total)}}`]));
  });

  it("stays used where its redrive seems to have got nowhere: the broker may have it all the same, or the session later", async () => {
    const id = await dead();
    const taken = world.tasks.publish.bind(world.tasks);
    world.tasks.publish = async (envelope) => { await taken(envelope); throw new Problem("broker_unavailable", "the answer was lost (fake)"); };
    expect(await one(id, { payload: edit(1) }, ann())).toMatchObject({ status: 503 });
    world.tasks.publish = taken;
    expect(await one(id, { payload: edit(2) }, bob())).toMatchObject({ status: 409, body: { code: "already_redriven", hint: expect.stringContaining("--redrive 2") as string } });
    for (const dryRun of [true, false]) {
      expect(await many({ all: true, dryRun }, bob()), `of all, dry run ${String(dryRun)}`).toMatchObject({ status: dryRun ? 200 : 202, body: { matched: 1, redriven: 0, skipped: [{ deadLetterId: id, code: "already_redriven" }] } });
    }
    expect(await one(id, { payload: edit(1) }, bob()), "the very same is a repetition").toMatchObject({ status: 202, body: { redrive: 1 } });
    world.sessions.readOutcome = async () => ({ state: "unknown" });
    for (let n = 0; n < 40; n += 1) { world.clock.ms += 600_000; await world.console.lookAround(); }
    expect((await world.call("GET", `/v1/dead-letters/${id}`, { key: viewer })).body).toMatchObject({ state: "dead", redriveCount: 1 });
    expect(await one(id, { payload: edit(2) }, bob())).toMatchObject({ status: 409, body: { detail: expect.stringContaining("made by ann") as string } });
    expect(await one(id, { payload: edit(2), redrive: 2 }, bob())).toMatchObject({ status: 202, body: { redrive: 2 } });
    expect(JSON.parse(commands().at(-1)!.event)).toMatchObject({ data: { total: 2 } });
  });

  it("is watched on when a repetition of it does not reach the broker", async () => {
    const id = await dead();
    expect(await one(id)).toMatchObject({ status: 202 });
    world.tasks.down = true;
    expect(await one(id, { redrive: 1 })).toMatchObject({ status: 503 });
    world.tasks.down = false;
    world.sessions.readOutcome = async () => ({ state: "unknown" });
    world.clock.ms += 600_000;
    await world.console.lookAround();
    expect(world.tasks.sent.map((envelope) => envelope.id)).toEqual([`redrive:${id}:1`, `redrive:${id}:1`]);
  });

  it("is refused while the first one is still on its way, although its letter still counts as dead", async () => {
    const id = await dead();
    world.tasks.publish = () => new Promise(() => undefined);
    void one(id, { payload: edit(1) }, ann()).catch(() => undefined);
    await expect.poll(async () => (await world.call("GET", `/v1/dead-letters/${id}`, { key: viewer })).body["redriveCount"]).toBe(1);
    expect(await one(id, { payload: edit(2) }, bob())).toMatchObject({ status: 409, body: { code: "already_redriven" } });
  });

  it("by a version of Docket that noted nothing: edited it is refused, as it was it is a repetition", async () => {
    const id = await dead();
    await one(id);
    const db = new Database(database);
    db.exec("delete from redrives_made");
    db.close();
    expect(await one(id, { payload: edit(1), redrive: 1 }, ann())).toMatchObject({ status: 409, body: { detail: `redrive 1 of dead letter ${id} was made before; an edited payload under the same number would have no effect, and nothing was sent` } });
    expect(await one(id, { redrive: 1 })).toMatchObject({ status: 202 });
  });

  it("is told by the command with exit code 4, and what to do", async () => {
    const cli = (...args: string[]) => docket(["dlq", "redrive", id, "--reason", "mended", ...args], { cwd: dir, env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: ann() } });
    const id = await dead();
    expect((await cli()).code).toBe(0);
    await writeFile(join(dir, "edited.json"), edit(7));
    const refused = await cli("--redrive", "1", "--edit", "edited.json");
    expect(refused).toMatchObject({ code: 4, out: "" });
    expect(refused.err).toMatch(new RegExp(`^error: redrive 1 of dead letter ${id} was made by ann at .*nothing was sent\nhint: .*--redrive 2.*\ncode:  already_redriven\npage: .*/dead-letters/${id}`));
    expect((await cli("--redrive", "2", "--edit", "edited.json")).code).toBe(0);
    expect(JSON.parse(commands().at(-1)!.event)).toMatchObject({ id: "mended", data: { total: 7 } });
  });

  it("is forgotten with its letter", async () => {
    const id = await dead();
    await one(id);
    const db = openReadModel(database);
    expect(await db.selectFrom("redrives_made").select("dead_letter_id").execute()).toEqual([{ dead_letter_id: id }]);
    await db.deleteFrom("dead_letters").execute();
    await forgetOld(db, ConsoleConfig.parse({}).retention, world.clock.ms);
    expect(await db.selectFrom("redrives_made").selectAll().execute()).toEqual([]);
    await db.destroy();
  });
});
