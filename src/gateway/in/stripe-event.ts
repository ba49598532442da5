/** Owns: what event a verified Stripe delivery is. Pure. */
import { Problem } from "../../contracts/problems.js";
import { objectAt, parseBodyObject, subjectAt, textAt, type Delivery } from "./fields.js";

/** `com.stripe.<type>`, id the event's own id (the same in every retry), subject the id of the object it is about. Throws Problem. */
export function stripeEvent(text: string): Delivery {
  const body = parseBodyObject(text);
  const id = textAt(body, "id");
  const type = textAt(body, "type");
  if (id === undefined || !/^[\x21-\x7e]{1,255}$/.test(id)) throw new Problem("validation_failed", "the Stripe event has no usable id");
  if (type === undefined || !/^[a-z0-9_.]{1,200}$/.test(type)) throw new Problem("validation_failed", "the Stripe event has no usable type");
  const subject = subjectAt(objectAt(objectAt(body, "data"), "object"), "id");
  return { incoming: { source: "https://api.stripe.com", id, type: `com.stripe.${type}`, data: text, ...(subject === undefined ? {} : { subject }) } };
}
