/** Owns: signing in: through the identity provider where there is one, or with a key, which goes to the console once and is not kept in the page. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, get, me, post } from "../lib/api.js";
import { go } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";

interface Ways { readonly apiKey: boolean; readonly oidc: { readonly label: string; readonly start: string } | null; readonly development: boolean }

/** What the console says in the address after a sign-in that did not work out. Only codes are read from there, never text. */
const WRONGS: Readonly<Record<string, string>> = {
  sign_in_unavailable: "The identity provider does not answer. Try again in a moment.",
  sign_in_refused: "The identity provider's answer was not usable. Try again; if it stays so, an administrator finds the reason in the audit.",
  sign_in_replayed: "This sign-in was used before, took too long, or began in another browser. Begin again.",
  clock_skew: "The clocks of the console and of the identity provider differ. An administrator has to set them.",
  no_role: "You are known to the identity provider, and nobody has given you a role here. Ask an administrator, or sign in as somebody else.",
  rate_limited: "Too many sign-ins from this address. Wait some minutes.",
};

export function SignIn(): JSX.Element {
  const key = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const [ways, setWays] = useState<Ways>();
  useEffect(() => {
    void get<Ways>("/session/ways").then(setWays, () => { setWays({ apiKey: true, oidc: null, development: false }); });
  }, []);
  const query = new URLSearchParams(location.search);
  const returned = location.pathname === "/sign-in";
  const returnTo = returned ? query.get("returnTo") ?? "/approvals" : location.pathname + location.search;
  const problem = returned ? query.get("problem") : null;
  const wrong = problem === null ? undefined : WRONGS[problem] ?? "The sign-in did not work out. Try again.";
  const request = /^[A-Za-z0-9._-]{1,100}$/.exec(query.get("request") ?? "")?.[0];
  const submit = async (): Promise<void> => {
    const apiKey = key.current?.value.trim() ?? "";
    if (apiKey === "") { setFault("Paste an API key first."); return; }
    setBusy(true);
    setFault("");
    try {
      const who = await post<Me>("/session", { apiKey });
      if (key.current !== null) key.current.value = "";
      if (returned) go("/approvals", "replace");
      me.set(who);
    } catch (error) {
      setFault(error instanceof ApiError && error.code === "unauthenticated" ? "The console does not know this key, or it has expired." : error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  const start = ways?.oidc === null || ways === undefined ? undefined : `${ways.oidc.start}?${new URLSearchParams({ returnTo, ...(problem === "no_role" ? { anew: "1" } : {}) }).toString()}`;
  return <main class="alone"><form class="sign-in" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
    <h1>Docket</h1>
    {ways?.development === true ? <p class="lost" role="note"><b>Development keys.</b> Whoever reads this machine's files can do everything here.</p> : null}
    {wrong === undefined ? null : <p class="fault" role="alert">{wrong}{request === undefined ? null : <> <span class="quiet">Request <span class="code">{request}</span></span></>}</p>}
    {start === undefined ? null : <a class="button go" href={start} target="_self">Sign in with {ways?.oidc?.label}</a>}
    {ways?.apiKey === false ? null : <>
      <p class="quiet">{start === undefined ? "Sign in with your API key" : "Or with your API key"}: it begins with <span class="code">dk_</span>, is yours alone, and its roles say what you may do here. The console exchanges it for a cookie that no script can read.</p>
      <label class="field"><span>API key</span><input ref={key} type="password" name="api-key" autoComplete="off" spellcheck={false} placeholder="dk_…" autoFocus={start === undefined} aria-describedby="sign-in-help" aria-invalid={fault !== ""} /></label>
      {fault === "" ? null : <p class="fault" role="alert">{fault}</p>}
      <button type="submit" class="go" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button>
      <p id="sign-in-help" class="quiet">{ways?.development === true ? <>Started by <span class="code">npm run dev</span>, Docket has made a key for you: it is in <span class="code">.docket/keys/dev-api-key.txt</span>, in the folder where it was started.</>
        : <>You have none? Ask whoever runs Docket. They make one on a machine of it: <span class="code">docket key create --principal YOU --class person --roles approver --scopes console:read</span></>}</p>
    </>}
  </form></main>;
}
