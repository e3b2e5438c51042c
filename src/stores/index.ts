// Stores: how a database keeps the kernel's promises. The only room with SQL and drivers.

export { openSqliteStore, type SqliteStoreOptions } from "./sqlite/sqlite-store.ts";
export { sqlite, type OpenOptions, type StoreSource } from "./source.ts";
