/** Owns: starting the console in the browser. */
import { render } from "preact";
import { firstReads } from "../../src/contracts/first-reads.js";
import { App } from "./app.js";
import { askEarly, refreshMe } from "./lib/api.js";
import "./style.css";

// The browser has begun with them already: the server announces them with the page.
for (const path of firstReads(location.pathname, new URLSearchParams(location.search))) askEarly(path);

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
void refreshMe();
