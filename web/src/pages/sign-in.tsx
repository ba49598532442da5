/** Owns: signing in. The key goes to the console once, and is not kept in the page. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { ApiError, me, post } from "../lib/api.js";
import type { Me } from "../lib/urgency.js";

export function SignIn(): JSX.Element {
  const key = useRef<HTMLInputElement>(null);
  const [fault, setFault] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    const apiKey = key.current?.value.trim() ?? "";
    if (apiKey === "") { setFault("Paste an API key first."); return; }
    setBusy(true);
    setFault("");
    try {
      const who = await post<Me>("/session", { apiKey });
      if (key.current !== null) key.current.value = "";
      me.set(who);
    } catch (error) {
      setFault(error instanceof ApiError && error.code === "unauthenticated" ? "The console does not know this key, or it has expired." : error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return <main class="alone"><form class="sign-in" onSubmit={(event) => { event.preventDefault(); void submit(); }}>
    <h1>Docket</h1>
    <p class="quiet">Sign in with an API key. The console exchanges it for a cookie that no script can read.</p>
    <label class="field"><span>API key</span><input ref={key} type="password" name="api-key" autoComplete="off" spellcheck={false} placeholder="dk_…" autoFocus aria-describedby="sign-in-help" aria-invalid={fault !== ""} /></label>
    {fault === "" ? null : <p class="fault" role="alert">{fault}</p>}
    <button type="submit" class="go" disabled={busy}>{busy ? "Signing in…" : "Sign in"}</button>
    <p id="sign-in-help" class="quiet">Under <span class="code">npm run dev</span> the key is in <span class="code">.docket/keys/dev-api-key.txt</span>.</p>
  </form></main>;
}
