// Remote: the port that a database behind a network implements, its queries and changes, and the tables.

export {
  ConnectionError,
  type Acknowledged,
  type QueryResult,
  type Backend,
  type BackendInfo,
  type Change,
  type CommitOutcome,
  type HistoryCheck,
  type Connection,
  type WireRow,
  type WireValue,
} from "./backend.ts";
export type { Condition, Count, Distinct, Lock, Lookup, Query, Select } from "./query.ts";
export { columnsOf, columnType, INSERTED_ONCE, keyColumns, TABLES, type TableName } from "../rows/tables.ts";
