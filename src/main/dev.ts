/**
 * Owns: `npm run dev`: one stack in the foreground. Exit code 0 after Ctrl-C, 1 when a part died or the start failed,
 * 2 for a wrong option.
 */
import { basename } from "node:path";
import pc from "picocolors";
import { DEV_HELP, parseDevOptions, type DevOptions } from "../launcher/dev-options.js";
import { LauncherError, messageOf } from "../launcher/errors.js";
import { LogView, parseLogLine } from "../launcher/log-view.js";
import type { ExitInfo } from "../launcher/managed-process.js";
import { describeExit, startStack, type Stack, type StackOptions } from "../launcher/stack.js";

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

async function main(): Promise<number> {
  const options = parseDevOptions(process.argv.slice(2), process.env);
  if (options.help) {
    say(DEV_HELP);
    return 0;
  }
  const interrupted = new Promise<"interrupted">((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => resolve("interrupted"));
  });
  const abort = new AbortController();
  const starting = startStack({ ...stackOptions(options), signal: abort.signal });
  const first = await Promise.race([starting, interrupted]);
  if (first === "interrupted") {
    say("Stopping before the start was complete.");
    abort.abort();
    await starting.then((stack) => stack.stop(), () => undefined);
    return 0;
  }
  say(readyBlock(first, options));
  const end = await Promise.race([first.done, interrupted]);
  if (end === "interrupted") {
    say("\nStopping.");
    await first.stop();
    say("Everything is stopped. Sessions are kept: the next start finds them again.");
    return 0;
  }
  return end.exit === undefined ? 0 : 1;
}

function stackOptions(options: DevOptions): StackOptions {
  const view = new LogView(options.verbose, say);
  const started = Date.now();
  say(pc.dim(`Starting Docket, profile ${options.profile}, data in ${options.dataDir}`));
  return {
    profile: options.profile,
    dataDir: options.dataDir,
    ports: options.ports,
    portOverrides: options.portOverrides,
    only: options.only,
    sessionsReplicas: options.sessionsReplicas,
    mtls: options.mtls,
    onExit: "stop",
    ...(options.runFile === undefined ? {} : { runFile: options.runFile }),
    onLine: (name, line) => {
      view.show(name, line, isApp(name));
    },
    onReady: (label) => {
      if (options.verbose) say(pc.dim(`ready after ${((Date.now() - started) / 1000).toFixed(1)} s: ${label}`));
    },
    report: (line) => {
      say(pc.dim(line));
    },
    onUnexpectedExit: explainExit,
  };
}

function isApp(name: string): boolean {
  return /^(gateway|sessions|tools|console)(-\d+)?$/.test(name);
}

function explainExit(exit: ExitInfo, lastLines: readonly string[]): void {
  const tail = lastLines.slice(-10).map((line) => `  ${parseLogLine(line).text.slice(0, 300)}`);
  process.stderr.write(`\n${pc.red(`${describeExit(exit)}, so everything is being stopped.`)} Its last lines:\n${tail.join("\n")}\n`);
}

function readyBlock(stack: Stack, options: DevOptions): string {
  const { gateway, console: consoleUrl } = stack.urls;
  const rows = [
    ["gateway", gateway],
    ["console", consoleUrl],
    ["data", stack.dataDir],
    ["logs", `${stack.dataDir}/logs/<name>.log`],
    ["API key", stack.env["DOCKET_API_KEY_FILE"]],
  ].filter((row): row is [string, string] => row[1] !== undefined);
  const open = consoleUrl === undefined || stack.env["DOCKET_API_KEY_FILE"] === undefined ? [] : [`Open ${consoleUrl} in a browser and sign in with the key in ${stack.env["DOCKET_API_KEY_FILE"]}`, ""];
  const commands = [
    ...(basename(stack.dataDir) === ".docket" ? [] : [`export DOCKET_DATA_DIR=${stack.dataDir}`]),
    'npx docket session send demo "refund 1200 cents of order 1001"',
    "npx docket approval list            # it waits for you: npx docket approval approve <ID>",
    "npx docket session tail demo        # the whole story, live",
  ];
  return [
    "",
    pc.bold(pc.green(`READY  Docket runs (profile ${options.profile})`)),
    ...rows.map(([label, value]) => `  ${label.padEnd(9)}${value}`),
    "",
    ...open,
    "Try next, in another terminal:",
    ...commands.map((command) => `  ${command}`),
    "",
    pc.dim("Ctrl-C stops everything; sessions are kept."),
    "",
  ].join("\n");
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: unknown) => {
    process.stderr.write(`\n${pc.red(error instanceof LauncherError ? error.render() : messageOf(error))}\n`);
    if (!(error instanceof LauncherError) && error instanceof Error) process.stderr.write(`${error.stack ?? ""}\n`);
    process.exitCode = error instanceof LauncherError && error.code === "OPTION_INVALID" ? 2 : 1;
  },
);
