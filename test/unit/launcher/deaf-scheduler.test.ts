import { expect, it } from "vitest";
import { deafScheduler } from "../../../src/launcher/deaf-scheduler.js";

const REFUSED = 'time="2026-11-30T14:01:51Z" level=error msg="error scheduling job guard-1: cron is closed" scope=dapr.scheduler.server';
const SILENT = '{"level":50,"app":"sessions","code":"scheduler_silent","missed":3,"msg":"the scheduler takes reminders and fires none"}';

it.each([REFUSED, SILENT])("a scheduler that refuses reminders, or fires none, is started again, once until it has had time to come up (%#)", (line) => {
  let nowMs = 0, revived = 0;
  const hear = deafScheduler(() => { revived += 1; }, () => nowMs);
  for (const heard of ["cron is ready", line, line]) hear(heard);
  expect(revived).toBe(1);
  nowMs = 59_999;
  hear(line);
  expect(revived).toBe(1);
  nowMs = 60_000;
  hear(line);
  expect(revived).toBe(2);
});
