/** Owns: what an administrator orders of a session at rest or in quarantine: release, close, delete. Each is asked back, wants a reason, and is audited. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { SessionView } from "../../../src/contracts/api.js";
import { ApiError, post } from "../lib/api.js";
import type { Me } from "../lib/urgency.js";
import { Dialog, Notice, Words } from "../parts/basics.js";

interface Order { readonly name: "release" | "close" | "delete"; readonly button: string; readonly title: string; readonly means: string }

const RELEASE: Order = { name: "release", button: "Release", title: "Release the session", means: "It goes on with what is stored, as it is. Calls that were out are asked for again, a model call that was running is started anew; dead letters of the meantime can be redriven." };
const CLOSE: Order = { name: "close", button: "Close", title: "Close the session", means: "Its open run is cancelled, and it takes no more events." };
const DELETE: Order = { name: "delete", button: "Delete", title: "Delete the session", means: "Its story is gone for everybody at once and is erased after a day. Only a tombstone stays. This cannot be taken back." };

export function SessionOrders({ view, me, onDone }: { view: SessionView; me: Me; onDone: () => void }): JSX.Element | null {
  const [order, setOrder] = useState<Order>();
  const [told, setTold] = useState<{ readonly tone: "bad" | "info"; readonly text: string }>();
  const { summary } = view;
  const { quarantine } = summary;
  const orders = me.rights.includes("administer") ? ordersFor(view) : [];
  if (quarantine === undefined && orders.length === 0) return null;
  return <section class="actions" aria-label="Orders to the session">
    {quarantine === undefined ? null : <Notice tone="bad"><b>In quarantine ({quarantine.reason}).</b> <Words text={quarantine.message} max={600} /> It takes no events and nothing moves it until an administrator releases or closes it.</Notice>}
    {orders.map((each) => <button key={each.name} type="button" class={each.name === "release" ? "" : "stop"} onClick={() => { setOrder(each); }}>{each.button}</button>)}
    {told === undefined ? null : <Notice tone={told.tone}>{told.text}</Notice>}
    {order === undefined ? null : <OrderDialog sessionId={summary.sessionId} order={order} onClose={(next) => { setOrder(undefined); if (next !== undefined) setTold(next); onDone(); }} />}
  </section>;
}

function ordersFor({ summary: { quarantine, status, mailboxLength } }: SessionView): Order[] {
  if (status === "DELETED") return [];
  if (quarantine !== undefined) return [RELEASE, CLOSE];
  return ["IDLE", "CLOSED"].includes(status) && mailboxLength === 0 ? [DELETE] : [];
}

function OrderDialog({ sessionId, order, onClose }: { sessionId: string; order: Order; onClose: (told?: { tone: "bad" | "info"; text: string }) => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const send = async (): Promise<void> => {
    try {
      await post(`/v1/sessions/${encodeURIComponent(sessionId)}/${order.name}`, { reason });
      onClose({ tone: "info", text: `The order to ${order.name} is on its way; the session shows what it made of it.` });
    } catch (error) {
      onClose({ tone: "bad", text: error instanceof ApiError ? `${error.message}.` : String(error) });
    }
  };
  return <Dialog title={order.title} onClose={() => { onClose(); }}>
    <p><bdi>{sessionId}</bdi>: {order.means}</p>
    <label class="field"><span>Reason</span><textarea rows={3} maxLength={2_000} value={reason} autoFocus onInput={(event) => { setReason(event.currentTarget.value); }} /></label>
    <div class="dialog-buttons"><button type="button" onClick={() => { onClose(); }}>Leave it as it is</button><button type="button" class="stop" disabled={reason.trim() === ""} onClick={() => { void send(); }}>{order.title}</button></div>
  </Dialog>;
}
