/** Owns: the API keys file of an app, followed while it runs; what the development key may do, and when keys were last used. */
import { join } from "node:path";
import { createApiKeys, followApiKeyFile, isDevelopmentKey, readApiKeyFile, type ApiKeyRecord, type ApiKeys } from "../platform/apikeys.js";
import { keysDirOf, type Config } from "../platform/config.js";
import { Problem } from "../contracts/problems.js";
import { keepKeyUses } from "../platform/key-uses.js";
import { errorFields, type Logger } from "../platform/log.js";

const LOOPBACK = /^(127(\.\d{1,3}){3}|::1|\[::1\]|localhost)$/;

/**
 * Keys of `<keysDir>/api-keys.json`; a changed file takes effect without a restart. The key of `npm run dev` lies in a file for everybody on this
 * machine: with it an app listens on loopback only, or does not start; one that comes later is not taken. Throws Problem `config_invalid`.
 */
export async function followedApiKeys(config: Config, logger: Logger, onChange: (change: KeyChange) => void = () => undefined): Promise<{ keys: ApiKeys; stop(): Promise<void> }> {
  const file = join(keysDirOf(config), "api-keys.json");
  const open = !LOOPBACK.test(config.publicHost);
  let known = await readApiKeyFile(file);
  if (open && known.some(isDevelopmentKey)) {
    throw new Problem("config_invalid", `DOCKET_PUBLIC_HOST is ${config.publicHost}, and ${file} has the key of npm run dev, which is for this machine only`, { hint: "make keys of your own (docket key create) and revoke it (docket key revoke), or listen on 127.0.0.1" });
  }
  const usable = (records: readonly ApiKeyRecord[]): ApiKeyRecord[] => records.filter((record) => !open || !isDevelopmentKey(record));
  const keys = keepKeyUses(createApiKeys(usable(known)), join(config.dataDir, `key-uses-${String(process.pid)}.json`), (error) => { logger.warn(errorFields(error), "the last uses of keys could not be written"); });
  const follow = followApiKeyFile(file, {
    replace: (records) => {
      const before = known;
      known = usable(records);
      if (known.length !== records.length) logger.error({ file }, "the key of npm run dev is not taken while this app listens beyond loopback");
      keys.keys.replace(known);
      const change = changeOf(before, known);
      if (change.added.length + change.removed.length > 0) onChange(change);
    },
  }, { onError: (error) => { logger.warn({ file, ...errorFields(error) }, "the API key file cannot be read; the keys read before stay"); } });
  return { keys: keys.keys, stop: async () => { follow.stop(); await keys.stop(); } };
}

export interface KeyChange { readonly added: readonly ApiKeyRecord[]; readonly removed: readonly ApiKeyRecord[] }

function changeOf(before: readonly ApiKeyRecord[], after: readonly ApiKeyRecord[]): KeyChange {
  const [were, are] = [before, after].map((keys) => new Set(keys.map((key) => JSON.stringify(key))));
  return { added: after.filter((key) => were?.has(JSON.stringify(key)) !== true), removed: before.filter((key) => are?.has(JSON.stringify(key)) !== true) };
}
