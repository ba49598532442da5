import { MemorySessionStore } from "../../support/memory-session-store.js";
import { describeSessionStoreContract } from "../../support/session-store-contract.js";

describeSessionStoreContract("in memory", () => {
  const store = new MemorySessionStore();
  return Promise.resolve({ first: store, second: store });
});
