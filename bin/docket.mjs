#!/usr/bin/env node
// Runs the built command. Imports nothing outside Node, so that it can say what is missing.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const main = new URL("../dist/src/cli/main.js", import.meta.url);
if (existsSync(fileURLToPath(main))) {
  await import(main.href);
} else {
  process.stderr.write("error: docket is not built yet\nhint:  npm run build (or npm run dev, which builds what is missing)\ncode:  not_built\n");
  process.exitCode = 1;
}
