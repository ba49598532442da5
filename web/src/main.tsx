/** Owns: starting the console in the browser. */
import { render } from "preact";
import { App } from "./app.js";
import { refreshMe } from "./lib/api.js";
import "./style.css";

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
void refreshMe();
