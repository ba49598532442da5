import fc from "fast-check";
import { it } from "vitest";
import { ChaoticHost } from "./chaos.js";
const number = fc.integer({ min: 0, max: 999 });
it("coverage", { timeout: 100000 }, () => {
  const counts: Record<string, number> = {}; let max = 0; const lens: number[] = [];
  for (const list of fc.sample(fc.array(fc.record({ kind: number, a: number, b: number, c: number }), { minLength: 1, maxLength: 250, size: "max" }), { numRuns: 200, seed: 1 })) {
    const host = new ChaoticHost();
    for (const move of list) { host.move(move); const d = host.bench.last?.decision; if (d && !d.ok) counts[`!${d.code}`] = (counts[`!${d.code}`] ?? 0) + 1; counts[`=${host.bench.state.status}`] = (counts[`=${host.bench.state.status}`] ?? 0) + 1;}
    for (const e of host.bench.entries.flatMap((x) => x.events)) {
      let k: string = e.type;
      if (e.type === "Escalated") k += `:${e.reason}`; if (e.type === "RunEnded") k += `:${e.outcome}:${e.code ?? ""}`; if (e.type === "ToolResultRecorded") k += `:${e.status}`; if (e.type === "DecisionRecorded") k += `:${e.kind}:${e.final}`; if (e.type === "DecisionRefused") k += `:${e.code}`; if (e.type === "ModelCallFailed") k += `:${e.kind}`; if (e.type==="LateResultRecorded") k+=`:${e.outcome}`; if (e.type==="ApprovalExpired") k+=`:${e.action}`; if (e.type==="DeadLetterRecorded") k+=`:${e.kind}:${e.reason}`;
      counts[k] = (counts[k] ?? 0) + 1;
    }
    max = Math.max(max, JSON.stringify(host.bench.state).length); lens.push(host.bench.entries.length);
  }
  console.log(Object.entries(counts).sort().map(([k, v]) => `${k} ${v}`).join("\n"), "max", max, "avg entries", lens.reduce((a, b) => a + b) / lens.length);
});
