/**
 * Owns: from `provider:model` to a Model. Keys and addresses come in as data; nothing here reads the environment.
 */
import { Problem } from "../contracts/problems.js";
import { AnthropicModel, type AnthropicOptions } from "./anthropic.js";
import { LimitedModel, rateKeyOf, type RateLedger } from "./limits.js";
import type { Model } from "./model.js";
import { didYouMean } from "../contracts/suggest.js";
import { OpenAiCompatibleModel, type OpenAiCompatibleOptions } from "./openai-compatible.js";
import type { PriceTable } from "./pricing.js";
import { ScriptedModel, type ScriptedOptions } from "./scripted.js";

export interface ModelsConfig {
  readonly anthropic?: Omit<AnthropicOptions, "prices">;
  /** The provider `openai`: any server that speaks its chat completions. */
  readonly openai?: Omit<OpenAiCompatibleOptions, "prices" | "provider">;
  /** More such servers by the name that stands before the colon, e.g. `nim`, `ollama`. */
  readonly servers?: Readonly<Record<string, Omit<OpenAiCompatibleOptions, "prices" | "provider">>>;
  readonly scripted?: ScriptedOptions;
  /** Overrides of the built-in prices. */
  readonly prices?: PriceTable;
  /** Limits every provider that has a key or an address; the ledger knows the limits of each `rateKeyOf`. */
  readonly ledger?: RateLedger;
  readonly onWarning?: (message: string) => void;
}

export interface Models {
  /** Names that may stand before the colon. */
  readonly providers: readonly string[];
  /** Throws Problem `config_invalid` for a name that leads nowhere. */
  resolve(name: string): { readonly model: Model; readonly name: string };
}

/** How to make a known provider usable. */
const HINTS: ReadonlyMap<string, string> = new Map([
  ["anthropic", "set ANTHROPIC_API_KEY, or use scripted:echo, which needs no key"],
  ["openai", "set OPENAI_BASE_URL (and OPENAI_API_KEY where the server asks for one), or use scripted:echo, which needs no key"],
]);

export function createModels(config: ModelsConfig): Models {
  const models = modelsOf(config);
  const providers = [...models.keys()];
  return {
    providers,
    resolve(full) {
      const colon = full.indexOf(":");
      const provider = colon === -1 ? "" : full.slice(0, colon);
      const name = full.slice(colon + 1);
      const model = models.get(provider);
      if (model !== undefined && name !== "") return { model, name };
      throw unresolved(full, provider, providers);
    },
  };
}

function modelsOf(config: ModelsConfig): Map<string, Model> {
  const prices = config.prices ?? {};
  const limited = (model: Model, apiKey: string | undefined): Model => (config.ledger === undefined ? model
    : new LimitedModel(model, { ledger: config.ledger, key: rateKeyOf(model.provider, apiKey), ...(config.onWarning === undefined ? {} : { onWarning: config.onWarning }) }));
  const models = new Map<string, Model>([["scripted", new ScriptedModel(config.scripted)]]);
  if (config.anthropic !== undefined) models.set("anthropic", limited(new AnthropicModel({ ...config.anthropic, prices }), config.anthropic.apiKey));
  const servers = { ...(config.openai === undefined ? {} : { openai: config.openai }), ...config.servers };
  for (const [provider, server] of Object.entries(servers)) {
    if (provider === "anthropic" || provider === "scripted") throw new Problem("config_invalid", `the model server "${provider}" has the name of a built-in provider`, { hint: "give it another name" });
    models.set(provider, limited(new OpenAiCompatibleModel({ ...server, provider, prices }), server.apiKey));
  }
  return models;
}

function unresolved(full: string, provider: string, providers: readonly string[]): Problem {
  const known = [...new Set([...providers, ...HINTS.keys()])];
  const hint = HINTS.get(provider);
  if (hint !== undefined && !providers.includes(provider)) return new Problem("config_invalid", `the model "${full}" needs the provider "${provider}", which is not configured`, { hint });
  if (providers.includes(provider)) return new Problem("config_invalid", `the model "${full}" names no model after "${provider}:"`, { hint: "write provider:model, e.g. anthropic:claude-sonnet-4-5" });
  if (provider === "") return new Problem("config_invalid", `the model "${full}" has no provider`, { hint: `write provider:model, e.g. anthropic:${full || "claude-sonnet-4-5"}; providers: ${known.join(", ")}` });
  return new Problem("config_invalid", `the model "${full}" has an unknown provider "${provider}"${didYouMean(provider, known)}`, { hint: `providers: ${known.join(", ")}` });
}
