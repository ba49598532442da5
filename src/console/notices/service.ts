/** Owns: the periodic work of notices: planning what has happened, and a sender for each channel, so that one that is down keeps no other waiting. */
import type { ConsoleConfig } from "../config.js";
import type { ConsoleDeps, Part } from "../ports.js";
import type { ReadModel } from "../read-model/database.js";
import { markOpenApprovals, noticeTroubles } from "../read-model/notices.js";
import { planNotices } from "./planner.js";
import { createSender, type Sender } from "./sender.js";

export interface Notices {
  /** What is to be done again and again, each by itself. */
  readonly work: readonly { readonly name: string; readonly run: () => Promise<void> }[];
  /** Takes in what is open, for channels that were not there before. */
  begin(): Promise<void>;
  /** For the System page. */
  readonly part: Part | undefined;
}

const LATE_MS = 5 * 60_000;
const DAY_MS = 86_400_000;

export function createNotices(db: ReadModel, config: Pick<ConsoleConfig, "notices" | "noticeTiming">, deps: Pick<ConsoleDeps, "noticeSigner" | "clock" | "logger">): Notices {
  const { notices: settings, noticeTiming: timing } = config;
  const senders = (settings?.channels ?? []).flatMap((channel): { name: string; sender: Sender }[] => (settings === undefined ? [] : [{ name: channel.name, sender: createSender(db, settings, channel, { timing, deps: { ...deps, random: Math.random } }) }]));
  return {
    work: [
      { name: "planning notices", run: async () => { await planNotices(db, settings, deps.clock.nowMs()); } },
      ...senders.map(({ name, sender }) => ({ name: `sending notices to ${name}`, run: async () => { await sender.deliver(); } })),
    ],
    begin: async () => { if (settings !== undefined) await markOpenApprovals(db); },
    part: settings === undefined ? undefined : { name: "notices", about: "what tells people outside of approvals", check: async () => {
      const nowMs = deps.clock.nowMs();
      const troubles = await noticeTroubles(db, { lateBeforeMs: nowMs - LATE_MS, sinceMs: nowMs - DAY_MS });
      if (troubles.length > 0) throw new Error(troubles.map(({ channel, late, givenUp }) => `${channel}: ${String(late)} wait for more than 5 minutes, ${String(givenUp)} given up today`).join("; "));
      return `${String(senders.length)} channels: ${senders.map(({ name }) => name).join(", ")}`;
    } },
  };
}
