/** Owns: `docket completion`, and the hidden `docket __complete` that its scripts ask for names. */
import { Argument, type Command } from "commander";
import { createClient } from "../client.js";
import { bashScript } from "../completion/bash.js";
import { fishScript } from "../completion/fish.js";
import { LIVE_KINDS, liveNames, type LiveKind } from "../completion/live.js";
import { placesOf } from "../completion/tree.js";
import { zshScript } from "../completion/zsh.js";
import type { CliContext, Runner } from "../context.js";
import { EXIT } from "../exit.js";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
/** A person waits at the prompt. */
const NAMES_MS = 2_000;

export function completionCommands(program: Command, run: Runner): void {
  program.command("completion").description("Print a script that completes commands, options and names by Tab, for a shell").addArgument(new Argument("<SHELL>", "the shell").choices(Object.keys(SCRIPTS)))
    .addHelpText("after", "\nExamples:\n  docket completion bash >> ~/.bash_completion\n  docket completion zsh > /usr/local/share/zsh/site-functions/_docket\n  docket completion fish > ~/.config/fish/completions/docket.fish")
    .action(run(({ io }: CliContext, shell: keyof typeof SCRIPTS) => {
      io.out(SCRIPTS[shell](placesOf(program)));
      return Promise.resolve(EXIT.ok);
    }));

  program.command("__complete", { hidden: true }).description("Names that the console knows, for completion").addArgument(new Argument("<KIND>", "of what").choices(LIVE_KINDS))
    .addHelpText("after", "\nExample:\n  docket __complete sessions")
    .action(run(async ({ io, connection }: CliContext, kind: LiveKind) => {
      const api = createClient({ url: connection.consoleUrl, name: "the console", apiKey: connection.apiKey, timeoutMs: NAMES_MS, interrupted: io.interrupted });
      io.out(await liveNames(api, kind));
      return EXIT.ok;
    }));
}
