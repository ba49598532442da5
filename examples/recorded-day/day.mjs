/** Owns: the seven deliveries of the recorded day, as CloudEvents. The second one is the first one again. */
const event = (id, type, source, data) => ({ specversion: "1.0", id, type, source, datacontenttype: "application/json", data });

const order = (orderId, totalCents, note = "") => event(orderId, "com.acme.order.created", "https://shop.acme.example/orders", { orderId, customer: "C. Lovelace", totalCents, note });
const mail = (mailId, subject, body) => event(mailId, "com.acme.mail.received", "https://mail.acme.example/inbox", { mailId, from: "grace@example.org", subject, body });

export const deliveries = [
  order("ord-1001", 12_900),
  order("ord-1001", 12_900),
  order("ord-1002", 4_500, "express"),
  order("ord-1003", 0),
  mail("eml-2001", "My grinder is broken", "It was broken when it came, I want a refund."),
  mail("eml-2002", "Opening hours", "When are you open on Sunday?"),
  event("fil-3001", "com.acme.file.uploaded", "https://files.acme.example/inbox", { fileId: "fil-3001", name: "march.pdf", text: "Invoice 77 of 3 March, 120.00 EUR, to be paid within 30 days." }),
];

/** The second case of the mail story: here the model is what fails twice. */
export const modelFails = mail("eml-2003", "A question", "Do you sell filter papers?");
