/** Owns: how people sign in at the console, read from the configuration. What does not fit together ends the boot. */
import { readFileSync } from "node:fs";
import { readAccessMap } from "../console/oidc/access-map.js";
import { isLoopback, type OidcSettings } from "../console/oidc/provider.js";
import { Problem } from "../contracts/problems.js";
import { required, type Config } from "../platform/config.js";

type SignIn = { readonly signIn: { readonly withKeys: boolean }; readonly oidc?: Partial<OidcSettings> & Pick<OidcSettings, "issuer"> };

/** A part of ConsoleConfig. Throws Problem `config_invalid`. */
export function signInFrom(config: Config): SignIn {
  const { oidcIssuer: issuer } = config;
  if (issuer === undefined) {
    if (!config.keySignIn) throw new Problem("config_invalid", "DOCKET_KEY_SIGN_IN is false and DOCKET_OIDC_ISSUER is not set: nobody could sign in", { hint: "set one of them" });
    return { signIn: { withKeys: true } };
  }
  const url = new URL(issuer);
  if (url.protocol !== "https:" && !isLoopback(url)) throw new Problem("config_invalid", `DOCKET_OIDC_ISSUER is ${issuer}: expected https (http only on this machine)`);
  const console = new URL(required(config, "consoleUrl"));
  const clientSecret = secretOf(config);
  return {
    signIn: { withKeys: config.keySignIn },
    oidc: {
      issuer, clientId: required(config, "oidcClientId"), scopes: config.oidcScopes, label: config.oidcLabel, lastsMs: Math.round(config.oidcHours * 3_600_000),
      access: readAccessMap(read(required(config, "oidcAccessFile"), "DOCKET_OIDC_ACCESS_FILE"), config.oidcAccessFile ?? ""),
      redirectUri: `${console.origin}/session/oidc/callback`, afterLogout: `${console.origin}/`, ...(clientSecret === undefined ? {} : { clientSecret }),
    },
  };
}

function secretOf({ oidcClientSecret, oidcClientSecretFile: file }: Config): string | undefined {
  if (file === undefined) return oidcClientSecret;
  if (oidcClientSecret !== undefined) throw new Problem("config_invalid", "DOCKET_OIDC_CLIENT_SECRET and DOCKET_OIDC_CLIENT_SECRET_FILE are both set", { hint: "keep one" });
  return read(file, "DOCKET_OIDC_CLIENT_SECRET_FILE").trim();
}

function read(file: string, from: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new Problem("config_invalid", `${from} names ${file}, which cannot be read: ${error instanceof Error && "code" in error ? String(error.code) : String(error)}`, { hint: "docs/identity.md" });
  }
}
