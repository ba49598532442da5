/** Owns: reading a YAML file of settings, with every fault of it in one Problem. */
import { parse } from "yaml";
import type { z } from "zod";
import { Problem, zodErrors } from "../contracts/problems.js";

export interface SettingsFault { readonly path: string; readonly message: string }
/** What its errors say: where the text is from, what it should do and where to read on. */
export interface SettingsFile { readonly from: string; readonly purpose: string; readonly hint: string }

/** The file's content. Throws Problem `config_invalid` with every fault. */
export function readSettings<T extends z.ZodType>(schema: T, text: string, file: SettingsFile): z.infer<T> {
  let raw: unknown;
  try {
    raw = parse(text);
  } catch (error) {
    throw new Problem("config_invalid", `${file.from} is not YAML: ${error instanceof Error ? error.message : String(error)}`, { cause: error, hint: file.hint });
  }
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw settingsFaulty(file, zodErrors(parsed.error));
  return parsed.data;
}

/** The same Problem for faults that a schema does not see. */
export function settingsFaulty({ from, purpose, hint }: SettingsFile, errors: readonly SettingsFault[]): Problem {
  const lines = errors.map(({ path, message }) => `  ${path === "" ? "(whole)" : path}: ${message}`);
  return new Problem("config_invalid", `${from} does not say ${purpose}:\n${lines.join("\n")}`, { errors: [...errors], hint });
}
