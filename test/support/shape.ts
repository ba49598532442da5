/** Owns: the shape of a type as text, all names taken apart: what a stored thing looks like, so that a change of it is seen. */
import { resolve } from "node:path";
import ts from "typescript";
import { REPO_ROOT } from "./cluster.js";

/** One line for each member of the exported types, `path: type`, in an order of their own. */
export function shapeOf(types: readonly { readonly file: string; readonly name: string }[]): string {
  const config = ts.getParsedCommandLineOfConfigFile(resolve(REPO_ROOT, "tsconfig.json"), {}, { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (problem) => { throw new Error(ts.flattenDiagnosticMessageText(problem.messageText, "\n")); } });
  const program = ts.createProgram(types.map(({ file }) => resolve(REPO_ROOT, file)), config?.options ?? {});
  const checker = program.getTypeChecker();
  return `${types.map(({ file, name }) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(resolve(REPO_ROOT, file)) ?? fail(file));
    const symbol = checker.getExportsOfModule(module ?? fail(file)).find((one) => one.name === name) ?? fail(`${file} ${name}`);
    return linesOf(checker, checker.getDeclaredTypeOfSymbol(symbol), name).join("\n");
  }).join("\n")}\n`;
}

function linesOf(checker: ts.TypeChecker, type: ts.Type, path: string): string[] {
  const parts = type.isUnion() ? type.types : [type];
  const plain = parts.filter((part) => isPlain(checker, part)).map((part) => checker.typeToString(part)).sort();
  const items = parts.flatMap((part) => (checker.isArrayType(part) ? checker.getTypeArguments(part as ts.TypeReference) : []));
  const objects = parts.filter((part) => !checker.isArrayType(part) && !isPlain(checker, part));
  return [...plain.length === 0 ? [] : [`${path}: ${plain.join(" | ")}`], ...items.flatMap((item) => linesOf(checker, item, `${path}[]`)), ...variantsOf(checker, objects).map((line) => path + line)];
}

/** Members of the objects of a union; each says which of them have it, unless all have. */
function variantsOf(checker: ts.TypeChecker, objects: readonly ts.Type[]): string[] {
  const having = new Map<string, string[]>();
  for (const object of objects) for (const line of membersOf(checker, object)) having.set(line, [...having.get(line) ?? [], tagOf(checker, object)]);
  return [...having].map(([line, tags]) => (tags.length === objects.length ? line : `<${tags.sort().join("|")}>${line}`)).sort();
}

/** Primitives, and records with any keys. */
function isPlain(checker: ts.TypeChecker, type: ts.Type): boolean {
  if (checker.isArrayType(type)) return false;
  return (type.flags & ts.TypeFlags.Object) === 0 && !type.isIntersection() || checker.getPropertiesOfType(type).length === 0;
}

/** What tells the objects of a union apart. */
function tagOf(checker: ts.TypeChecker, type: ts.Type): string {
  const tag = ["type", "status", "phase"].map((name) => checker.getPropertyOfType(type, name)).find((member) => member !== undefined);
  return tag === undefined ? "" : checker.typeToString(checker.getTypeOfSymbol(tag)).replaceAll('"', "");
}

function membersOf(checker: ts.TypeChecker, type: ts.Type): string[] {
  return checker.getPropertiesOfType(type).flatMap((member) => {
    const optional = (member.flags & ts.SymbolFlags.Optional) !== 0;
    const own = checker.getTypeOfSymbol(member);
    return linesOf(checker, optional ? checker.getNonNullableType(own) : own, `.${member.name}${optional ? "?" : ""}`);
  });
}

function fail(what: string): never { throw new Error(`there is no ${what}`); }
