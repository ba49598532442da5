import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

/** The console's pages, built into dist/web, from where the console app serves them. */
export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  publicDir: false,
  build: {
    outDir: fileURLToPath(new URL("../dist/web", import.meta.url)), emptyOutDir: true, target: "es2022",
    // The content policy knows no inline anything: every asset is a file of its own.
    assetsInlineLimit: 0, modulePreload: { polyfill: false },
  },
});
