import { describeCallStoreContract } from "../../support/tools/call-store-contract.js";
import { MemoryCallStore } from "../../support/tools/memory-call-store.js";

describeCallStoreContract("in memory", () => {
  const store = new MemoryCallStore();
  return Promise.resolve({ first: store, second: store });
});
