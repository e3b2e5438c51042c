// reprise/postgres: the PostgreSQL door.

export type { PostgresHandle, PostgresResult } from "./user-handle.ts";
