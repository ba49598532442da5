/** The commands around notices against the real console API, over HTTP. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { ensureDevKeys, loadSigner, loadTrust } from "../../../src/platform/keys.js";
import { docket } from "../../support/cli-fakes.js";
import { ACTOR, messageOf, pendingOf, startConsole, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { noticesText, settingsFor, startReceiver, type Receiver } from "../../support/notices.js";

let dir: string;
let world: ConsoleWorld;
let receiver: Receiver;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-cli-notices-"));
  await ensureDevKeys(dir);
  receiver = await startReceiver();
  world = await startConsole({ signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) }, (url) => ({ notices: settingsFor(noticesText(), receiver, url), noticeTiming: { refusals: 1 } }));
});
afterAll(async () => { await world.close(); await receiver.close(); await rm(dir, { recursive: true }); });
const as = (roles: string[], args: string[]) => docket(args, { env: { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: world.key(roles) } });

it("shows who was told, sends again what was given up, and makes a link", async () => {
  receiver.answer = ({ path }) => ({ status: path.startsWith("/slack") ? 404 : 200 });
  world.sessions.views.set(ACTOR, viewOf());
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()));
  await world.console.lookAround();
  const { out } = await as(["viewer"], ["approval", "notices", "apr_1"]);
  const [, notice] = /^(ntc_\w+) +ops +opened +given_up +1 .*HTTP 404/m.exec(out) ?? [];
  expect(out).toMatch(/hook +opened +sent/);
  receiver.answer = () => ({ status: 200 });
  expect(await as(["operator"], ["approval", "resend", "apr_1", notice ?? ""])).toMatchObject({ code: 0, out: "waiting\n" });
  expect((await as(["operator"], ["approval", "resend", "apr_1", "ntc_0"])).code).toBe(3);
  expect((await as(["admin"], ["approval", "link", "apr_1", "ann", "--expires", "2h"])).out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/confirm#ey/);
  expect((await as(["admin"], ["approval", "link", "apr_1", "zoe"])).code).toBe(6);
});
