/** Owns: `docket init`: the keys and secrets that `npm run dev` makes by itself, for those who start with `dapr run`. */
import type { Command } from "commander";
import { ensureDataSecrets } from "../../launcher/secrets.js";
import type { Runner } from "../context.js";
import { EXIT } from "../exit.js";
import { fields } from "../output.js";

export function initCommand(program: Command, runner: Runner): void {
  program.command("init")
    .description("make signing keys, an API key and local secrets in a data folder; what is there stays")
    .option("--data-dir <DIR>", "the data folder (DOCKET_DATA_DIR of dapr.yaml)", ".dapr")
    .addHelpText("after", "\nExample:\n  docket init --data-dir .dapr && dapr run -f dapr.yaml")
    .action(runner(async ({ printer }, options) => {
      const { dataDir } = options as { dataDir: string };
      const made = await ensureDataSecrets(dataDir);
      printer.one({ dataDir, keysDir: made.keysDir, apiKeyFile: made.apiKeyFile }, () => fields([["data folder", dataDir], ["keys", made.keysDir], ["API key", made.apiKeyFile]]));
      return EXIT.ok;
    }));
}
