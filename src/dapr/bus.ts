/**
 * Owns: publishing an envelope to a channel. A 204 means that the broker has it (as durable as the component makes
 * it); anything else throws Problem `broker_unavailable`.
 *
 * The envelope is complete, so it goes out as a raw payload: daprd neither takes it apart nor puts its own trace into it
 * (DESIGN 7.7), and what reads it sees the CloudEvent byte for byte.
 *
 * What goes together has no order among itself: daprd publishes it side by side. Who needs order waits for one publication before the next.
 *
 * B1 one request of a channel is on its way at a time; what comes meanwhile goes with the next one, together. Alone, nothing waits.
 * B2 a request that hangs does not hold up the channel: after HANGS_MS the next one starts beside it.
 */
import { CHANNELS, type ChannelName } from "../contracts/channels.js";
import { serializeEnvelope, type Envelope } from "../contracts/cloudevent.js";
import { Problem } from "../contracts/problems.js";
import { describeReply, type Sidecar, type SidecarReply } from "./sidecar.js";

/** daprd takes 4 MiB at most; an envelope has up to 256 KiB, a third more as base64. */
const BATCH_CHARS = 2 * 1024 * 1024;
const BATCH_SIZE = 64;
const HANGS_MS = 200;

interface Waiting { readonly envelope: Envelope; readonly text: string; readonly done: () => void; readonly failed: (problem: Problem) => void }
interface Line { readonly waiting: Waiting[]; underWay: number; overdue: NodeJS.Timeout | undefined }

export class DaprBus {
  readonly #lines = new Map<ChannelName, Line>();

  /** `together: false` where the sidecar serves single publications only. */
  constructor(private readonly sidecar: Sidecar, private readonly options: { readonly together: boolean } = { together: true }) {}

  publish(channelName: ChannelName, envelope: Envelope): Promise<void> {
    const line = this.#lines.get(channelName) ?? { waiting: [], underWay: 0, overdue: undefined };
    this.#lines.set(channelName, line);
    return new Promise((done, failed) => {
      line.waiting.push({ envelope, text: serializeEnvelope(envelope), done, failed });
      if (line.underWay === 0 || !this.options.together) this.#send(channelName, line);
      else line.overdue ??= setTimeout(() => { this.#send(channelName, line); }, HANGS_MS);
    });
  }

  /** Sends what waits, if anything does. */
  #send(channelName: ChannelName, line: Line): void {
    clearTimeout(line.overdue);
    line.overdue = undefined;
    const batch = this.options.together ? takeBatch(line.waiting) : line.waiting.splice(0, 1);
    const [first] = batch;
    if (first === undefined) return;
    line.underWay += 1;
    const sent = batch.length === 1 ? this.#one(channelName, first) : this.#many(channelName, batch);
    void sent.finally(() => {
      line.underWay -= 1;
      if (line.underWay === 0) this.#send(channelName, line);
    });
  }

  async #one(channelName: ChannelName, { envelope, text, done, failed }: Waiting): Promise<void> {
    const { component, topic } = CHANNELS[channelName];
    const key = envelope.partitionkey === undefined ? "" : `&metadata.partitionKey=${encodeURIComponent(envelope.partitionkey)}`;
    try {
      const reply = await this.sidecar.call("POST", `/v1.0/publish/${component}/${topic}?metadata.rawPayload=true${key}`, {
        body: text, contentType: "application/cloudevents+json", unavailable: "broker_unavailable",
        headers: envelope.traceparent === undefined ? {} : { traceparent: envelope.traceparent },
      });
      if (reply.status === 204 || reply.status === 200) done();
      else failed(refused(envelope, topic, describeReply(reply)));
    } catch (error) {
      failed(problemOf(error));
    }
  }

  async #many(channelName: ChannelName, batch: readonly Waiting[]): Promise<void> {
    const { component, topic } = CHANNELS[channelName];
    const entries = batch.map(({ envelope, text }, index) => ({
      // As base64, or daprd would read numbers as doubles.
      entryId: String(index), event: Buffer.from(text).toString("base64"), contentType: "application/octet-stream",
      metadata: { rawPayload: "true", ...(envelope.partitionkey === undefined ? {} : { partitionKey: envelope.partitionkey }) },
    }));
    try {
      const reply = await this.sidecar.call("POST", `/v1.0-alpha1/publish/bulk/${component}/${topic}?metadata.rawPayload=true`, { body: JSON.stringify(entries), unavailable: "broker_unavailable" });
      const failures = failuresOf(reply, batch.length);
      for (const [index, { envelope, done, failed }] of batch.entries()) {
        const failure = failures === "all" ? describeReply(reply) : failures.get(String(index));
        if (failure === undefined) done();
        else failed(refused(envelope, topic, failure));
      }
    } catch (error) {
      const problem = problemOf(error);
      for (const { failed } of batch) failed(problem);
    }
  }
}

function takeBatch(waiting: Waiting[]): Waiting[] {
  let chars = 0;
  const beyond = waiting.findIndex(({ text }, index) => {
    chars += text.length;
    return index > 0 && (index >= BATCH_SIZE || chars > BATCH_CHARS);
  });
  return waiting.splice(0, beyond === -1 ? waiting.length : beyond);
}

/** Which entries of a batch of `size` failed; a failure that names none of them counts for all: nothing is taken for published that may not be. */
function failuresOf(reply: SidecarReply, size: number): Map<string, string> | "all" {
  if (reply.status === 204 || reply.status === 200) return new Map();
  try {
    const { failedEntries = [] } = JSON.parse(reply.text) as { failedEntries?: { entryId: string; error?: string }[] };
    const ours = failedEntries.filter(({ entryId }) => Number(entryId) < size);
    return ours.length === 0 ? "all" : new Map(ours.map(({ entryId, error }) => [entryId, error ?? "no reason given"]));
  } catch {
    return "all";
  }
}

function refused(envelope: Envelope, topic: string, detail: string): Problem {
  return new Problem("broker_unavailable", `publishing ${envelope.type} ${envelope.id} to ${topic} failed: ${detail}`, { hint: "check the broker and the component's scopes (docket doctor)" });
}

function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem("broker_unavailable", error instanceof Error ? error.message : String(error), { cause: error });
}
