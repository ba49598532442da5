import { describeInboxContract } from "../../support/inbox-contract.js";
import { MemoryKeyValue } from "../../support/gateway-fakes.js";

describeInboxContract("in memory", () => new MemoryKeyValue());
