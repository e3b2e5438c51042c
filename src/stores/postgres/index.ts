// reprise/postgres: the PostgreSQL door.

export { postgres } from "./source.ts";
export type { PostgresHandle, PostgresResult } from "./user-handle.ts";
