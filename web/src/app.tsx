/** Owns: the frame around every page: navigation with counts, who is signed in, whether the console is there, and which page the address means. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { PageName } from "../../src/contracts/first-reads.js";
import { lostSince, me as meStore, refreshMe, signOut } from "./lib/api.js";
import { leading, useKeys, useLeaderKeys } from "./lib/keys.js";
import { useNow, usePoll } from "./lib/poll.js";
import { followLinks, go, usePlace, type Place } from "./lib/router.js";
import { useStore } from "./lib/use-store.js";
import { subject } from "./lib/title.js";
import type { Me } from "./lib/urgency.js";
import { span, titleOf } from "./lib/words.js";
import { Dialog, Empty, Loading } from "./parts/basics.js";
import { DiagnosisLine } from "./parts/diagnoses.js";
import { Agents } from "./pages/agents.js";
import { Approvals } from "./pages/approvals.js";
import { Confirm } from "./pages/confirm.js";
import { Audit } from "./pages/audit.js";
import { Costs } from "./pages/costs.js";
import { DeadLetters } from "./pages/dead-letters.js";
import { Policies } from "./pages/policies.js";
import { SessionPage } from "./pages/session.js";
import { Sessions } from "./pages/sessions.js";
import { SignIn } from "./pages/sign-in.js";
import { System } from "./pages/system.js";

export interface Overview { readonly sessions: Readonly<Record<string, number>>; readonly approvalsOpen: number; readonly deadLetters: number }

/** Shorter than this a hiccup is not worth a banner. */
const LOST_AFTER_MS = 2_500;
const PAGES: readonly (readonly [path: PageName, title: string, key: string])[] = [["approvals", "Approvals", "a"], ["sessions", "Sessions", "s"], ["dead-letters", "Dead letters", "d"], ["costs", "Costs", "c"], ["audit", "Audit", "u"], ["policies", "Policies", "p"], ["agents", "Agents", "n"], ["system", "System", "y"]];

export function App(): JSX.Element {
  const me = useStore(meStore);
  const { path: [page] } = usePlace();
  useEffect(() => {
    document.addEventListener("click", followLinks);
    return () => { document.removeEventListener("click", followLinks); };
  }, []);
  return <><LostBanner />{page === "confirm" ? <Confirm /> : me === undefined ? <Waiting /> : me === null ? <SignIn /> : <Frame me={me} />}</>;
}

/** Until the console has said who is signed in. */
function Waiting(): JSX.Element {
  useEffect(() => {
    const timer = window.setInterval(() => { void refreshMe(); }, 1_000);
    return () => { window.clearInterval(timer); };
  }, []);
  return <main class="alone"><Loading /></main>;
}

function LostBanner(): JSX.Element {
  const since = useStore(lostSince);
  const nowMs = useNow();
  const [offsetMs] = useState(() => nowMs - Date.now());
  const goneMs = since === undefined ? 0 : nowMs - offsetMs - since;
  return <div class="lost-place" role="alert">{goneMs < LOST_AFTER_MS ? null : <p class="lost"><b>No connection to the console</b> for {span(goneMs)}. What you see is from before; nothing can be decided until it is back. Trying again every second.</p>}</div>;
}

function Frame({ me }: { me: Me }): JSX.Element {
  const place = usePlace();
  const { value: overview } = usePoll<Overview>("/v1/overview", 4_000);
  const [help, setHelp] = useState(false);
  const leader = useStore(leading);
  useKeys({
    "?": () => { setHelp(true); },
    "/": () => { document.querySelector<HTMLInputElement>("input[type=search]")?.focus(); },
  });
  useLeaderKeys(Object.fromEntries(PAGES.map(([path, , key]) => [key, () => { go(`/${path}`); }])));
  const page = place.path[0] ?? "approvals";
  const counts: Readonly<Record<string, number | undefined>> = { approvals: overview?.approvalsOpen, "dead-letters": overview?.deadLetters };
  const name = PAGES.find(([path]) => path === page)?.[1] ?? "Docket";
  const about = useStore(subject);
  const waiting = overview?.approvalsOpen ?? 0;
  useEffect(() => { document.title = titleOf({ page: name, subject: about, waiting }); }, [name, about, waiting]);
  return <div class={`frame ${leader ? "leading" : ""}`}>
    <a class="skip" href="#main">Skip to the page</a>
    <header class="side">
      <a class="brand" href="/approvals">Docket</a>
      <nav aria-label="Pages">{PAGES.map(([path, title, key]) => <a key={path} href={`/${path}`} aria-current={page === path ? "page" : undefined}><span>{title}</span>{counts[path] === undefined || counts[path] === 0 ? null : <span class={`count ${path === "approvals" ? "count-open" : ""}`}>{counts[path]}</span>}<kbd aria-hidden="true">g {key}</kbd></a>)}</nav>
      <div class="who">{me.development === true ? <span class="dev-note" title="Development keys: whoever reads this machine's files can do everything here. For this machine only.">Development keys</span> : null}<bdi class="clip" title={`${me.principal.id}${me.email === undefined ? "" : ` (${me.email})`}, roles: ${me.principal.roles.join(", ")}`}>{me.name ?? me.email ?? me.principal.id}</bdi><span class="quiet clip">{me.principal.roles.join(", ") || "no role"}</span>
        <span class="who-buttons"><button type="button" class="link keys-button" onClick={() => { setHelp(true); }}>Keys <kbd aria-hidden="true">?</kbd></button><button type="button" class="link" onClick={() => { void signOut(); }}>Sign out</button></span></div>
    </header>
    <main id="main" tabIndex={-1}>{page === "system" ? null : <DiagnosisLine />}<Page place={place} me={me} overview={overview} /></main>
    {help ? <KeyHelp onClose={() => { setHelp(false); }} /> : null}
  </div>;
}

function Page({ place: { path, query }, me, overview }: { place: Place; me: Me; overview: Overview | undefined }): JSX.Element {
  const [page, id] = path;
  switch (page) {
    case undefined: case "approvals": return <Approvals me={me} id={id} query={query} />;
    case "sessions": return id === undefined ? <Sessions query={query} counts={overview?.sessions} /> : <SessionPage key={id} id={id} query={query} me={me} />;
    case "dead-letters": return <DeadLetters me={me} id={id} query={query} />;
    case "costs": return <Costs query={query} />;
    case "audit": return <Audit me={me} />;
    case "policies": return <Policies />;
    case "agents": return <Agents />;
    case "system": return <System />;
    default: return <div class="page"><Empty title="There is no such page"><p><a href="/approvals">To the approvals</a></p></Empty></div>;
  }
}

const KEYS: readonly (readonly [string, string])[] = [
  ["j  k", "next, previous"], ["a a", "approve: two presses"], ["m", "modify the arguments"], ["x", "reject, with a reason"], ["r", "respond in place of the tool"], ["o", "approve for this session"], ["i", "assign to me, give back"], ["t", "assign to somebody"], ["s", "snooze, wake"], ["Esc", "disarm, close"],
  ["/", "search"], ["g a", "approvals"], ["g s", "sessions"], ["g d", "dead letters"], ["g c", "costs"], ["g u", "audit"], ["g p", "policies"], ["g n", "agents"], ["g y", "system"], ["?", "this list"],
];

function KeyHelp({ onClose }: { onClose: () => void }): JSX.Element {
  return <Dialog title="Keys" onClose={onClose}><dl class="key-list">{KEYS.map(([keys, what]) => <div key={keys}><dt><kbd>{keys}</kbd></dt><dd>{what}</dd></div>)}</dl><p class="quiet">Keys rest while you type. Nothing is approved by Enter alone, nor by a key that is held down.</p></Dialog>;
}
