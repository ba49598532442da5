import { expect, it } from "vitest";
import { earlyCalls } from "../../../src/launcher/early-call.js";

const PANIC = [
  "panic: runtime error: invalid memory address or nil pointer dereference [recovered]",
  "github.com/dapr/dapr/pkg/api/grpc.(*api).CallActor(0x10b8687d8000, {0x4365928, 0x10b8695b8ae0}, 0x10b868d93310)",
];

it("a sidecar that died of an early actor call is started again, twenty times within a minute; one that died of something else is not", () => {
  let nowMs = 0;
  const startAgain = earlyCalls(() => nowMs);
  expect(startAgain(["fatal error: out of memory"])).toBe(false);
  expect(startAgain([PANIC[0] ?? "", "main.main()"])).toBe(false);
  expect(startAgain([...PANIC, ...Array.from({ length: 80 }, () => "a later life")])).toBe(false);
  for (let death = 1; death <= 20; death += 1) expect(startAgain(PANIC)).toBe(true);
  expect(startAgain(PANIC)).toBe(false);
  nowMs = 60_000;
  expect(startAgain(PANIC)).toBe(true);
});
