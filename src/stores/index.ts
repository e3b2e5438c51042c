// Stores: how a database keeps the kernel's promises. The only room with SQL and drivers.

export { backUpFile } from "./sqlite/back-up.ts";
export { readSchema } from "./sqlite/migrate.ts";
export { openSqliteStore, type SqliteStoreOptions } from "./sqlite/sqlite-store.ts";
export {
  threadsOf,
  type ChannelVersion,
  type NewChannel,
  type NewThreadCheckpoint,
  type Serialized,
  type StoredChannel,
  type ThreadCheckpoint,
  type Threads,
  type ThreadWrite,
} from "./threads.ts";
export { sqlite, type OpenOptions, type StoreSource } from "./source.ts";
export {
  LinkError,
  type Answer,
  type Backend,
  type BackendInfo,
  type Change,
  type CommitOutcome,
  type Link,
  type WireRow,
  type WireValue,
} from "./remote/backend.ts";
export type { Condition, Count, Distinct, Lock, Lookup, Question, Select } from "./remote/query.ts";
export { columnsOf, columnType, keyColumns, TABLES, type TableName } from "./remote/tables.ts";
export { tryApply, tryWith, type Applied, type Attempt, type AttemptOptions } from "./remote/attempt.ts";
export { wantFootprint } from "./remote/footprint.ts";
export { wordsOf, type Hints, type Mode } from "./remote/words.ts";
export { Miss, WorkingSet } from "./remote/working-set.ts";
export { listQueues, readBacklog } from "./remote/backlog.ts";
export { openPostgresBackend, type PostgresOptions } from "./postgres/backend.ts";
export { mysql } from "./mysql/source.ts";
export { postgres } from "./postgres/source.ts";
export { openRemoteStore, RemoteStore } from "./remote/remote-store.ts";
export type { RemoteStoreOptions } from "./remote/session.ts";
export { scratchBesideFile, scratchOnServer, type Scratch } from "./scratch.ts";
