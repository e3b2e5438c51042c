// reprise/sqlite: the SQLite door.

export { sqlite } from "../source.ts";
