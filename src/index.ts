// reprise: the front door.

export {
  CancelledError,
  FatalError,
  RepriseError,
  RetryLater,
  type Duration,
  type ErrorCode,
  type RetryPolicy,
} from "./base/index.ts";
export {
  createEngine,
  type Client,
  type Engine,
  type EngineOptions,
  type Filter,
  type Run,
  type RunInfo,
  type StartOptions,
  type WorkerSettings,
} from "./engine/index.ts";
export {
  promise,
  task,
  typed,
  type AnyTask,
  type Definition,
  type InputOf,
  type JournalEntry,
  type Logger,
  type OutputOf,
  type Policy,
  type PromisePort,
  type RepriseEvent,
  type Schema,
  type Status,
  type Task,
  type TaskContext,
  type TaskOptions,
} from "./kernel/index.ts";
export type { StoreSource } from "./stores/index.ts";
export {
  workflow,
  type Child,
  type ChildOptions,
  type Determinism,
  type DurableContext,
  type OperationContext,
  type Replay,
  type TaskCallOptions,
  type Timer,
  type Workflow,
  type WorkflowContext,
  type WorkflowOptions,
} from "./workflow/index.ts";
