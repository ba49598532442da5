/**
 * Owns: the doctor's rules for one channel's pub/sub component, by broker: the settings without which the channel loses,
 * reorders or shares what it must not (DESIGN 7).
 */
import type { Channel } from "../../contracts/channels.js";
import { streamNameOf } from "../broker.js";
import type { ComponentFile } from "../components.js";

/** Channels whose readers rely on the order. */
const ORDERED = ["tasks", "journal"];
/** Names this copy of an app alone; set by the launcher. */
const REPLICA = "DOCKET_REPLICA";

type Rule = (channel: Channel, component: ComponentFile) => string[];

const RULES: Readonly<Record<string, Rule>> = { "pubsub.jetstream": jetstream, "pubsub.redis": redis, "pubsub.rabbitmq": rabbitmq, "pubsub.kafka": kafka };

/** What is wrong with a channel's component; empty for a broker without rules. */
export function brokerProblems(channel: Channel, component: ComponentFile): string[] {
  return (RULES[component.type]?.(channel, component) ?? []).map((problem) => `${channel.component}: ${problem}`);
}

function jetstream(channel: Channel, { values, envRefs }: ComponentFile): string[] {
  const queue = values["queueGroupName"] !== undefined;
  return [
    ...must(values, "streamName", streamNameOf(channel), "each channel has its own stream"),
    ...must(values, "concurrency", "single", "\"parallel\" acks before the handler ran (DESIGN 7.11)"),
    ...(channel.delivery === "broadcast" && !envRefs.includes(REPLICA) ? [`broadcast needs a durableName for each replica: envRef ${REPLICA}`] : []),
    ...(queue === (channel.delivery === "competing") ? [] : [`${channel.delivery} delivery ${queue ? "must not have" : "needs"} a queueGroupName`]),
  ];
}

function redis(_channel: Channel, { values }: ComponentFile): string[] {
  return /^\d+$/.test(values["redeliverInterval"] ?? "") ? [] : ["redeliverInterval takes milliseconds without a unit (DESIGN 7.13)"];
}

/** The component's own defaults lose messages: queues that go with their last reader, nothing on disk, no confirms. */
function rabbitmq(channel: Channel, { values, envRefs }: ComponentFile): string[] {
  const both = [
    ...must(values, "durable", "true", "all apps must declare an exchange alike, and queues must survive the broker's restart"),
    ...must(values, "deletedWhenUnused", "false", "or the queue goes, with all in it, when its last reader does"),
    ...must(values, "concurrency", "single", "parallel handlers reorder"),
  ];
  const ownQueue = values["consumerID"] !== undefined || envRefs.includes(REPLICA);
  if (channel.delivery === "broadcast") return ownQueue ? both : [...both, `broadcast needs a queue for each replica: consumerID by envRef ${REPLICA}`];
  return [
    ...both,
    ...must(values, "deliveryMode", "2", "messages must be on disk"),
    ...must(values, "publisherConfirm", "true", "or a publish that never arrived looks good"),
    ...must(values, "requeueInFailure", "true", "or what failed is dropped"),
    ...(ORDERED.includes(channel.component) ? must(values, "prefetchCount", "1", "more in flight reorder when one is repeated") : []),
    ...(ownQueue ? ["must leave consumerID out: replicas of an app share its queue"] : []),
  ];
}

function kafka(channel: Channel, { values, envRefs }: ComponentFile): string[] {
  const shared = values["consumerGroup"];
  if (channel.delivery === "broadcast") return shared === undefined && envRefs.includes(REPLICA) ? [] : [`broadcast needs a consumerGroup for each replica: envRef ${REPLICA}`];
  return [
    ...(values["consumeRetryEnabled"] === "false" ? ["consumeRetryEnabled must not be false: a later offset would skip what failed"] : []),
    ...(shared === undefined ? ["needs a consumerGroup that all replicas share"] : []),
    ...must(values, "initialOffset", "oldest", "or what was published before the first reader came is lost"),
  ];
}

function must(values: Readonly<Record<string, string>>, key: string, expected: string, why: string): string[] {
  const value = values[key];
  return value === expected ? [] : [`${key} is "${value ?? ""}", expected "${expected}": ${why}`];
}
