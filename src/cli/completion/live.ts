/** Owns: names that only the console knows, for completion: sessions, approvals, and so on. What cannot be asked has no names. */
import { z } from "zod";
import { ApprovalPage, DeadLetterGroup, DeadLetterPage, SessionPage } from "../../contracts/api.js";
import type { Client } from "../client.js";
import { clip, plain } from "../output.js";

interface Name { readonly name: string; readonly about: string }
const Named = z.object({ name: z.string(), description: z.string().default("") });
const MOST = 200;

const SOURCES = {
  sessions: async (api) => (await api.get(`/v1/sessions?limit=${String(MOST)}`, SessionPage)).items.map((s) => ({ name: s.sessionId, about: `${s.agent}, ${s.status}` })),
  approvals: async (api) => (await api.get(`/v1/approvals?limit=${String(MOST)}`, ApprovalPage)).items.map(({ pending: { record, sessionId } }) => ({ name: record.approvalId, about: `${record.tool ?? record.kind} of ${sessionId}` })),
  letters: async (api) => (await api.get(`/v1/dead-letters?state=dead&limit=${String(MOST)}`, DeadLetterPage)).items.map(({ letter }) => ({ name: letter.deadLetterId, about: `${letter.kind}, ${letter.reason}` })),
  fingerprints: async (api) => (await api.get("/v1/dead-letters/groups", z.object({ items: z.array(DeadLetterGroup) }))).items.map((group) => ({ name: group.fingerprint, about: `${String(group.count)} of ${group.kind}, ${group.reason}` })),
  agents: async (api) => (await api.get("/v1/agents", z.object({ agents: z.array(Named) }))).agents.map(({ name, description }) => ({ name, about: description })),
  tools: async (api) => (await api.get("/v1/agents", z.object({ tools: z.array(Named) }))).tools.map(({ name, description }) => ({ name, about: description })),
  views: async (api) => (await api.get("/v1/views", z.object({ items: z.array(z.object({ name: z.string(), address: z.string() })) }))).items.map(({ name, address }) => ({ name, about: address })),
} satisfies Record<string, (api: Client) => Promise<Name[]>>;

export type LiveKind = keyof typeof SOURCES;
export const LIVE_KINDS = Object.keys(SOURCES) as LiveKind[];

/** `name<TAB>about` lines. A name with characters that cannot be typed is left out. */
export async function liveNames(api: Client, kind: LiveKind): Promise<string> {
  const names = await SOURCES[kind](api).catch(() => []);
  return names.filter(({ name }) => name !== "" && plain(name) === name).map(({ name, about }) => `${name}\t${clip(plain(about), 60)}\n`).join("");
}
