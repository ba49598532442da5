/** Owns: the API keys file of an app, followed while it runs. */
import { join } from "node:path";
import { createApiKeys, followApiKeyFile, readApiKeyFile, type ApiKeys } from "../platform/apikeys.js";
import { errorFields, type Logger } from "../platform/log.js";

/** Keys of `<keysDir>/api-keys.json`; a changed file takes effect without a restart. */
export async function followedApiKeys(keysDir: string, logger: Logger): Promise<{ keys: ApiKeys; stop(): Promise<void> }> {
  const file = join(keysDir, "api-keys.json");
  const keys = createApiKeys(await readApiKeyFile(file));
  const follow = followApiKeyFile(file, keys, { onError: (error) => { logger.warn({ file, ...errorFields(error) }, "the API key file cannot be read; the keys read before stay"); } });
  return { keys, stop: () => { follow.stop(); return Promise.resolve(); } };
}
