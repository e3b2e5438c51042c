// Kernel: the rules every kind of run keeps. Pure: no I/O, no clock, no SQL.
//
// What it owns: runs and their statuses, the journal and its hash chain, the writes and their outcomes, the Store port,
// and what workflows, graphs and flows share (definitions, tasks, ports, schemas).
// What it does not: how a database keeps a promise (stores), how code is replayed (workflow), who executes (worker).

export type {
  Arrival,
  Claim,
  ClaimedItem,
  ClaimedTurn,
  ClaimItemsOutcome,
  ClaimItemsWrite,
  ClaimTurnsWrite,
  ExpectedRun,
  FireDueOutcome,
  FireDueWrite,
  InboxRow,
  ItemBackWrite,
  ItemEndWrite,
  ItemFence,
  ItemOutcome,
  MessageOutcome,
  MessageWrite,
  NewChild,
  NewItem,
  NewRun,
  Outcome,
  OutcomeOf,
  StartOutcome,
  StartWrite,
  StopOutcome,
  StopWrite,
  TurnBackWrite,
  TurnOutcome,
  TurnWrite,
  Write,
} from "./commit.ts";
export { DEADLINE_ITEM, DEDUP_MS } from "./commit.ts";
export {
  appendText,
  applyDelta,
  CheckpointFold,
  isTold,
  isWholeDue,
  lengthOf,
  readWhole,
  toldAfter,
  rebuildCheckpoints,
  stateParts,
  wholeText,
  type ChannelTexts,
  type Delta,
  type NewCheckpoint,
  type Told,
} from "./checkpoint.ts";
export {
  checkNodeRoute,
  nodeRoute,
  readNodeRoute,
  readinessEvidence,
  type ArrivalKind,
  type CompleteOutcome,
  type CompleteWrite,
  type InputsAsked,
  type NewEntry,
  type NewSpread,
  type NodeArrival,
  type NodeFence,
  type NodeInput,
  type NodeItem,
  type QueuedNode,
  type NodeRoute,
  type Readiness,
  type ReadinessEvidence,
} from "./completion.ts";
export type {
  PauseOutcome,
  PauseWrite,
  ResumeOutcome,
  ResumeWrite,
  RetryOutcome,
  RetryWrite,
  TerminateOutcome,
  TerminateWrite,
} from "./control.ts";
export type { Args, Awaitable, Data, Definition, InputOf, OutputOf, PortsOf, StateOf } from "./definition.ts";
export { forkedOf, type Forked, type ForkOutcome, type ForkWrite } from "./fork.ts";
export type { Database, Settled, TransactOutcome } from "./database.ts";
export {
  checkVersion,
  isAnswer,
  type DefinitionVersion,
  type NextGeneration,
  type VersionCount,
} from "./generation.ts";
export { emit, isObserved, type RepriseEvent } from "./events.ts";
export type { SchedulerMetrics } from "./scheduler.ts";
export {
  CHAIN_START,
  chainAfter,
  commandTypeOf,
  END_ENTRIES,
  faultOf,
  findJournalFault,
  isCancel,
  isTerminal,
  journalEntryOf,
  markOf,
  type CommandType,
  type EndEntry,
  type Entry,
  type EntryType,
  type JournalEntry,
  type JournalFault,
} from "./journal.ts";
export {
  promise,
  query,
  signal,
  stream,
  update,
  type Answer,
  type Asked,
  type Named,
  type Payload,
  type Ports,
  type PromisePort,
  type Query,
  type Received,
  type Signal,
  type Stream,
  type Timed,
  type Update,
} from "./ports.ts";
export {
  DEFAULT_QUEUE,
  limitsOf,
  limitsText,
  lineOf,
  lineOptions,
  queue,
  queueLimits,
  type AdmitOutcome,
  type AdmitWrite,
  type ChangeQueueWrite,
  type DeclareQueueWrite,
  type Limit,
  type Line,
  type LineOptions,
  type Queue,
  type QueueLimits,
  type QueueOptions,
  type QueueOutcome,
  type QueueState,
  type StoredLimit,
  type Waiting,
} from "./queue.ts";
export { itemOfCommand, lifeOf, retriedOf, runsOf, stepPath, VoidEntries, type Retried } from "./retried.ts";
export { decideRetry, type RetryDecision } from "./retry.ts";
export {
  checkDeadline,
  hasEnded,
  leastNumberAt,
  STATUSES,
  type EndStatus,
  type LiveStatus,
  type RunNumber,
  type RunRecord,
  type Status,
} from "./run.ts";
export {
  CATCH_UPS,
  isScheduled,
  OVERLAPS,
  plannedRunId,
  scheduleStateOf,
  scheduleTag,
  type CatchUp,
  type DueSchedules,
  type Overlap,
  type PutScheduleOutcome,
  type PutScheduleWrite,
  type RemoveScheduleOutcome,
  type RemoveScheduleWrite,
  type ScheduleRecord,
  type ScheduleState,
  type Timing,
} from "./schedule.ts";
export {
  dueTimeOf,
  MAX_CATCH_UP,
  MISSED_AFTER_MS,
  planFiring,
  type PlannedTimes,
  type SchedulePlan,
} from "./schedule-plan.ts";
export { parse, parseNow, typed, type Schema } from "./schema.ts";
export {
  MAX_HELD_ITEMS,
  type OnProgress,
  type HeldWork,
  type Problem,
  type Rekeyed,
  type PruneOptions,
  type RunFilter,
  type RunHolder,
  type RunPulse,
  type Store,
  type ItemState,
  type StoreInfo,
  type WorkerInfo,
} from "./store.ts";
export {
  HISTORY_END,
  HISTORY_PREFIX,
  historyOf,
  historyRow,
  INCARNATION_KEY,
  newIncarnation,
  otherIncarnation,
  type HistoryBreak,
  type HistoryEvent,
  type MetaRow,
} from "./history.ts";
export {
  ALONE_AFTER,
  groupSize,
  ISOLATED_AFTER,
  levelsOf,
  MAX_TAKEOVERS,
  quarantineMs,
  SUSPECT_AFTER,
  SUSPECTS_SEEN,
} from "./suspects.ts";
export { labelOption, Labels } from "./label.ts";
export type { Backlog } from "./backlog.ts";
export {
  readAbout,
  readDoing,
  servesBacklog,
  workerTag,
  type LeftToOthers,
  type WorkerAbout,
  type WorkerDoing,
} from "./worker-about.ts";
export type {
  ClaimedMessage,
  ClaimMessagesOutcome,
  ClaimMessagesWrite,
  MessageBackWrite,
  MessageDeliveredOutcome,
  MessageDeliveredWrite,
  MessageFence,
  NewMessage,
  DestinationInfo,
  OutboxInfo,
} from "./outbox.ts";
export type { Chunk, Emit } from "./stream.ts";
export {
  checkPolicy,
  checkPriority,
  isTask,
  task,
  taskBody,
  type AnyTask,
  type Logger,
  type Policy,
  type Task,
  type TaskBody,
  type TaskContext,
  type TaskOptions,
} from "./task.ts";
export { checkRedact, Redaction, type RedactOptions } from "./redaction.ts";
export { dataWithoutSecrets, registerSecrets, secretNeedles, withoutSecrets, type SecretValues } from "./secrets.ts";
export { WORK_KINDS } from "./news.ts";
export type { ChangeNotice, WorkKind } from "./news.ts";
