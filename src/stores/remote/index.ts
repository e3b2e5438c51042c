// What a database behind a network has to be: the port of a backend, its questions and changes, and the tables they are about.

export {
  LinkError,
  type Acknowledged,
  type Answer,
  type Backend,
  type BackendInfo,
  type Change,
  type CommitOutcome,
  type HistoryCheck,
  type Link,
  type WireRow,
  type WireValue,
} from "./backend.ts";
export type { Condition, Count, Distinct, Lock, Lookup, Question, Select } from "./query.ts";
export { columnsOf, columnType, keyColumns, TABLES, type TableName } from "./tables.ts";
