/**
 * Owns: the nine channels (DESIGN 2). Each is one Dapr pub/sub component of its own name, one topic, and fixed
 * publishers and subscribers. Everything that names a topic takes the name from here.
 */

export const APPS = ["gateway", "sessions", "tools", "console"] as const;
/** A Dapr app id of Docket. */
export type AppId = (typeof APPS)[number];

export interface Channel {
  /** Dapr pub/sub component name. */
  readonly component: string;
  /** Broker topic. Fixed: renaming one loses what waits in it. */
  readonly topic: string;
  readonly publishers: readonly AppId[];
  readonly subscribers: readonly AppId[];
  /** `competing`: replicas share the messages. `broadcast`: every replica gets all of them, and losing some is allowed. */
  readonly delivery: "competing" | "broadcast";
}

export const DEAD_LETTER_TOPIC = "agent.dlq.poison-pills";

export const CHANNELS = {
  tasks: {
    component: "tasks", topic: "agent.tasks.incoming",
    publishers: ["gateway", "console"], subscribers: ["sessions"], delivery: "competing",
  },
  toolRequests: {
    component: "tool-requests", topic: "agent.tools.execute",
    publishers: ["sessions"], subscribers: ["tools"], delivery: "competing",
  },
  toolResults: {
    component: "tool-results", topic: "agent.tools.completed",
    publishers: ["tools"], subscribers: ["sessions"], delivery: "competing",
  },
  approvalsPending: {
    component: "approvals-pending", topic: "agent.hitl.pending_approval",
    publishers: ["sessions"], subscribers: ["console"], delivery: "competing",
  },
  approvalsResolved: {
    component: "approvals-resolved", topic: "agent.hitl.resolved",
    publishers: ["console"], subscribers: ["sessions"], delivery: "competing",
  },
  responses: {
    component: "responses", topic: "agent.responses.completed",
    publishers: ["sessions"], subscribers: ["gateway"], delivery: "competing",
  },
  live: {
    component: "live", topic: "agent.responses.live",
    publishers: ["sessions"], subscribers: ["gateway"], delivery: "broadcast",
  },
  journal: {
    component: "journal", topic: "agent.sessions.journal",
    publishers: ["sessions"], subscribers: ["console"], delivery: "competing",
  },
  deadLetters: {
    component: "dead-letters", topic: DEAD_LETTER_TOPIC,
    publishers: ["gateway", "sessions", "tools", "console"], subscribers: ["console"], delivery: "competing",
  },
} as const satisfies Record<string, Channel>;

export type ChannelName = keyof typeof CHANNELS;

/** State store components, one owner each (DESIGN 2: what each app holds). */
export const STATE_STORES = { sessions: "session-store", inbox: "inbox", tools: "tool-store" } as const;

/** The virtual actor type that hosts one session. The name is part of stored reminders: never rename. */
export const SESSION_ACTOR_TYPE = "SessionActor";
