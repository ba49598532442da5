/** Every store contract on the embedded profile's SQLite components, through real sidecars. */
import { join } from "node:path";
import Database from "better-sqlite3";
import { describeRealStores } from "../support/real-stores.js";

describeRealStores("DaprState over SQLite", () => Promise.resolve({
  rowExists: async (key, dataDir) => {
    const database = new Database(join(dataDir, "state", "sessions.db"), { readonly: true });
    try {
      return database.prepare("SELECT 1 FROM state WHERE key = ?").get(key) !== undefined;
    } finally {
      database.close();
    }
  },
}));
