/** Owns: which channels an event of an approval goes to. Pure. All routes that fit are collected; none means that nobody is told. */
import type { PendingApproval } from "../../contracts/decisions.js";
import { globFits } from "../../session/core/policy/policy.js";
import type { Route } from "./settings.js";

type CardEvent = Route["on"][number];

/** `to`: of an escalation, who may decide from then on. */
export function channelsFor(routes: readonly Route[], { tenant, agent, record }: PendingApproval, event: CardEvent, to: readonly string[] = []): string[] {
  const deciders = event === "escalated" ? to : [...record.approvers.roles, ...(record.approvers.groups ?? [])];
  const fitting = routes.filter(({ match, on }) => on.includes(event) && match.tenant === tenant
    && (match.tools === undefined || match.tools.some((glob) => globFits(glob, record.tool ?? "")))
    && (match.agents === undefined || match.agents.some((glob) => globFits(glob, agent)))
    && match.risk?.includes(record.risk) !== false && match.kinds?.includes(record.kind) !== false
    && (match.approvers === undefined || match.approvers.some((name) => deciders.includes(name))));
  return [...new Set(fitting.flatMap((route) => route.to))];
}
