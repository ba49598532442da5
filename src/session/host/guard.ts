/**
 * Owns: names and data of the guard's reminders. One periodic reminder per busy period (a generation); a tick of an
 * older generation only removes itself.
 */
import { z } from "zod";

/** Reminder name of a generation: `[A-Za-z0-9_-]{1,64}` (DESIGN 7.5). */
export function guardName(generation: number): string { return `guard-${String(generation)}`; }

const GuardData = z.object({ purpose: z.literal("guard"), generation: z.number().int() });

export function guardData(generation: number): string {
  return JSON.stringify({ purpose: "guard", generation });
}

/** Generation of a reminder's data; undefined where it is not ours. */
export function generationOf(data: string): number | undefined {
  try {
    const parsed = GuardData.safeParse(JSON.parse(data));
    return parsed.success ? parsed.data.generation : undefined;
  } catch {
    return undefined;
  }
}
