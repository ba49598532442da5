/** Owns: `docket approval notices`, `resend` and `link`: who was told of an approval, telling them again, and a one-time link to decide it. */
import type { Command } from "commander";
import { z } from "zod";
import { LINK_SPAN, NoticeItem, OneTimeLink } from "../../contracts/notices.js";
import { segment, type CliContext, type Runner } from "../context.js";
import { durationMs } from "../duration.js";
import { EXIT } from "../exit.js";
import { plain, relative } from "../output.js";
import { showList, watchable, type WatchOptions } from "../watch.js";

const Notices = z.object({ items: z.array(NoticeItem) });
const Resent = z.object({ noticeId: z.string(), state: z.string() });

export function noticeCommands(approval: Command, run: Runner): void {
  watchable(approval.command("notices <ID>").description("Which notices of an approval went where, and what became of them"))
    .addHelpText("after", "\nExample:\n  docket approval notices apr_4f1c")
    .action(run((context: CliContext, id: string, options: WatchOptions) => showList(context, options, {
      fetch: () => context.console.get(`/v1/approvals/${segment(id)}/notices`, Notices), id: (n) => n.noticeId, empty: "nobody was told; docs/notices.md says how",
      columns: (nowMs) => ({ NOTICE: (n) => n.noticeId, CHANNEL: (n) => n.channel, EVENT: (n) => n.event, STATE: (n) => n.state, ATTEMPTS: (n) => String(n.attempts), WHEN: (n) => relative(n.settledAtMs ?? n.createdAtMs, nowMs), NOTE: (n) => n.note }),
    })));
  approval.command("resend <ID> <NOTICE>").description("Send a notice again that was given up")
    .option("--reason <TEXT>", "for the audit", "")
    .addHelpText("after", "\nExample:\n  docket approval resend apr_4f1c ntc_77aa --reason \"the address is right now\"")
    .action(run(async ({ console, printer }: CliContext, id: string, notice: string, { reason }: { reason: string }) => {
      const { body } = await console.post(`/v1/approvals/${segment(id)}/notices/${segment(notice)}/resend`, { reason }, Resent);
      printer.one(body, () => `${plain(body.state)}\n`);
      return EXIT.ok;
    }));
  approval.command("link <ID> <WHO>").description("Make a one-time link for a person of the notices file; they decide with it once")
    .option("--expires <TIME>", "how long it is good (30m, 24h); it never outlives the approval")
    .addHelpText("after", "\nExample:\n  docket approval link apr_4f1c ann@example.com --expires 2h")
    .action(run(async ({ console, printer }: CliContext, id: string, who: string, { expires }: { expires?: string }) => {
      const { body } = await console.post(`/v1/approvals/${segment(id)}/links`, { principal: who, ...(expires === undefined ? {} : { expiresInMs: durationMs("--expires", expires, LINK_SPAN) }) }, OneTimeLink);
      printer.one(body, () => `${plain(body.url)}\n`);
      if (printer.format === "table") printer.say(`for ${plain(body.principal)}, ends ${relative(body.expiresAtMs, Date.now())}`);
      return EXIT.ok;
    }));
}
