// reprise/sqlite: the SQLite door.

export { sqlite } from "../store-source.ts";
