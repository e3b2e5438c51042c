// reprise/sqlite: the SQLite door.

export { sqlite, type SqliteOptions } from "../store-source.ts";
