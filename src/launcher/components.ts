/**
 * Owns: reading a profile's component files the way daprd will, to know which component each app must have loaded, and what
 * its broker consumer looks like. daprd skips a file it cannot parse with a warning; here it is an error.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { z } from "zod";
import { LauncherError, messageOf } from "./errors.js";

const componentSchema = z.object({
  apiVersion: z.literal("dapr.io/v1alpha1"),
  kind: z.literal("Component"),
  metadata: z.object({ name: z.string().min(1) }),
  spec: z.object({
    type: z.string().regex(/^[a-z]+\./),
    version: z.string(),
    metadata: z.array(z.object({ name: z.string(), value: z.union([z.string(), z.number(), z.boolean()]).optional(), envRef: z.string().optional() })).default([]),
  }),
  scopes: z.array(z.string()).default([]),
});

export interface ComponentFile {
  readonly file: string;
  readonly name: string;
  readonly type: string;
  readonly version: string;
  /** App ids that may load it; empty means all. */
  readonly scopes: readonly string[];
  readonly values: Readonly<Record<string, string>>;
  /** Environment variables it reads. */
  readonly envRefs: readonly string[];
}

/** All Component documents of a folder. Other kinds (Resiliency, Configuration) are left out. */
export function readComponents(dir: string): ComponentFile[] {
  return listYaml(dir).flatMap((file) => readComponentFile(join(dir, file)));
}

/** The components that daprd loads for one app. */
export function componentsFor(appId: string, components: readonly ComponentFile[]): ComponentFile[] {
  return components.filter((component) => component.scopes.length === 0 || component.scopes.includes(appId));
}

function listYaml(dir: string): string[] {
  try {
    return readdirSync(dir).filter((name) => /\.ya?ml$/.test(name)).sort();
  } catch (error) {
    throw new LauncherError("OPTION_INVALID", `There are no component files in ${dir}.`, "Check --profile: each profile is a folder of components/.", { cause: error });
  }
}

function readComponentFile(file: string): ComponentFile[] {
  return parseAllDocuments(readFileSync(file, "utf8")).flatMap((document) => {
    const value: unknown = document.toJS();
    if (document.errors[0]) throw invalid(file, document.errors[0].message);
    if (typeof value !== "object" || value === null || !("kind" in value) || value.kind !== "Component") return [];
    const parsed = componentSchema.safeParse(value);
    if (!parsed.success) {
      throw invalid(file, parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`).join("; "));
    }
    const { metadata, spec, scopes } = parsed.data;
    const values: Record<string, string> = {};
    for (const item of spec.metadata) if (item.value !== undefined) values[item.name] = String(item.value);
    const envRefs = spec.metadata.flatMap((item) => (item.envRef === undefined ? [] : [item.envRef]));
    return [{ file, name: metadata.name, type: spec.type, version: spec.version, scopes, values, envRefs }];
  });
}

function invalid(file: string, problem: string): LauncherError {
  return new LauncherError("RUN_FILE_INVALID", `The component file ${file} is not valid: ${messageOf(problem)}`, "daprd would skip this file and start without the component. Correct it.");
}
