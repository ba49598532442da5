#!/usr/bin/env node
// The image's entry point: starts the app that the first argument names. Imports nothing outside Node, so that it can say what is missing.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const APPS = ["gateway", "sessions", "tools", "console", "setup-cluster"];
const [app] = process.argv.splice(2, 1);
const main = new URL(`../dist/src/main/${app}.js`, import.meta.url);
if (!APPS.includes(app)) {
  process.stderr.write(`error: there is no app ${JSON.stringify(app ?? "")}\nhint:  give one of ${APPS.join(", ")} as the first argument\n`);
  process.exitCode = 2;
} else if (!existsSync(fileURLToPath(main))) {
  process.stderr.write("error: docket is not built yet\nhint:  npm run build\n");
  process.exitCode = 1;
} else {
  await import(main.href);
}
