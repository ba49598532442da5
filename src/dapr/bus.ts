/**
 * Owns: publishing an envelope to a channel. A 204 means that the broker has it (as durable as the component makes
 * it); anything else throws Problem `broker_unavailable`.
 *
 * daprd replaces the trace parent inside an event by its own span's, which is empty where tracing is off, whatever the
 * call's header says. It leaves both alone where the event brings a `traceid` (DESIGN 7.7, pinned by test/integration/dapr-facts).
 */
import { CHANNELS, type ChannelName } from "../contracts/channels.js";
import { serializeEnvelope, type Envelope } from "../contracts/cloudevent.js";
import { Problem } from "../contracts/problems.js";
import { describeReply, type Sidecar } from "./sidecar.js";

export class DaprBus {
  constructor(private readonly sidecar: Sidecar) {}

  async publish(channelName: ChannelName, envelope: Envelope): Promise<void> {
    const channel = CHANNELS[channelName];
    const query = envelope.partitionkey === undefined ? "" : `?metadata.partitionKey=${encodeURIComponent(envelope.partitionkey)}`;
    const reply = await this.sidecar.call("POST", `/v1.0/publish/${channel.component}/${channel.topic}${query}`, {
      body: bodyOf(envelope), contentType: "application/cloudevents+json", unavailable: "broker_unavailable",
      headers: envelope.traceparent === undefined ? {} : { traceparent: envelope.traceparent },
    });
    if (reply.status !== 204 && reply.status !== 200) {
      throw new Problem("broker_unavailable", `publishing ${envelope.type} ${envelope.id} to ${channel.topic} failed: ${describeReply(reply)}`,
        { hint: "check the broker and the component's scopes (docket doctor)" });
    }
  }
}

function bodyOf(envelope: Envelope): string {
  const text = serializeEnvelope(envelope);
  return envelope.traceparent === undefined ? text : `{"traceid":${JSON.stringify(envelope.traceparent)},${text.slice(1)}`;
}
