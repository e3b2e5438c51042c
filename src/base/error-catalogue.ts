// Every code an error of ours can carry, sorted by who must act on it. A code is part of the public interface: its
// meaning never changes, and a code is never reused.

export type ErrorFamily = "usage" | "determinism" | "store" | "outcome" | "federation" | "invariant";

export const ERROR_CATALOGUE = {
  // usage: the caller must change the call
  BAD_DURATION: {
    family: "usage",
    summary: 'A duration is neither a whole number of milliseconds nor text such as "5 minutes".',
    next: 'Write a non-negative number of milliseconds, or a number and a unit (ms, s, m, h, d, or second, minute, hour, day, week): "500ms", "30 s", "2 hours".',
  },
  BAD_FLOW: {
    family: "usage",
    summary: "A flow does not hang together: a node that needs what is not above it, a name used twice, no output.",
    next: "Correct the node named in the message.",
  },
  BAD_FORMAT: {
    family: "usage",
    summary:
      "A text is not in the format it should be in: a field is missing, unknown or of another type, or it comes from a newer version.",
    next: "Correct the field at the path in the message, or update reprise when the text is of a newer version.",
  },
  BAD_GRAPH: {
    family: "usage",
    summary:
      "A graph does not hang together: an edge to no node, two ways on without a condition, a change of no channel.",
    next: "Correct the node or edge named in the message.",
  },
  BAD_ID: {
    family: "usage",
    summary: "A run id is empty, too long, or holds characters a store cannot keep.",
    next: "Use a non-empty string of at most 255 characters without control characters.",
  },
  BAD_INPUT: {
    family: "usage",
    summary: "The input does not satisfy the schema of the definition.",
    next: "Correct the input where the message says; it must be what the schema of the definition asks for.",
  },
  BAD_NAME: {
    family: "usage",
    summary: "A name is empty, too long, or holds characters a store cannot keep.",
    next: "Use a non-empty string of at most 200 characters without control characters.",
  },
  BAD_OPTIONS: {
    family: "usage",
    summary: "An option is missing, unknown, or outside its range.",
    next: "Correct the option named in the message.",
  },
  BAD_PAYLOAD: {
    family: "usage",
    summary:
      "Text that cannot be stored or read back unchanged: malformed Unicode, a `__proto__` key, or broken payload text.",
    next: "Remove the value at the path in the message; if the text came from the store, run `reprise doctor`.",
  },
  BAD_POLICY: {
    family: "usage",
    summary: "A retry policy contradicts itself.",
    next: "Give maxAttempts of at least 1, a baseDelay above 0, and a maxDelay of at least baseDelay.",
  },
  BAD_SCHEDULE: {
    family: "usage",
    summary: "A schedule could never be kept: its pattern, interval, time zone or policies make no sense.",
    next: "Give one of cron and every, with a time that comes and a time zone that exists.",
  },
  BAD_STORE_URL: {
    family: "usage",
    summary: "The address of the store is not one we know how to open.",
    next: 'Write a URL whose scheme names a store, such as "sqlite:shop.db" or "postgres://user:password@host/shop".',
  },
  BAD_THREAD: {
    family: "usage",
    summary: "A LangGraph config names no thread, or one whose name a store cannot keep.",
    next: 'Call the graph with { configurable: { thread_id: "…" } }, a non-empty string.',
  },
  CHECKPOINT_NOT_FOUND: {
    family: "usage",
    summary: "A run has no committed checkpoint of this step or with this label.",
    next: "List those it has: `reprise checkpoints <id>`, or run.checkpoints().",
  },
  DRIVER_MISSING: {
    family: "usage",
    summary: "The package that speaks to this kind of database is not installed.",
    next: "Install the package named in the message beside reprise: `npm install pg` or `npm install mysql2`.",
  },
  DUPLICATE_DEFINITION: {
    family: "usage",
    summary: "Two different definitions carry the same name.",
    next: "Rename one of them, or register only one.",
  },
  ENGINE_CLOSED: {
    family: "usage",
    summary: "The engine was used after it was closed.",
    next: "Close the engine last, or create a new one.",
  },
  NOT_DATA: {
    family: "usage",
    summary: "A value that is not data was about to be recorded.",
    next: "Return plain objects, arrays, strings, numbers, bigint, Date, Map, Set, Uint8Array or Error; read the rest first.",
  },
  NOT_RETRYABLE: {
    family: "usage",
    summary: "A failed run cannot go on from where it failed.",
    next: "Read why in the message; start a new run.",
  },
  NO_QUERY_HANDLER: {
    family: "usage",
    summary: "A query was asked that the run's code has registered no answer for where it stands.",
    next: "Call `ctx.onQuery` before the first wait of the workflow; a run that is only expected cannot answer yet.",
  },
  PAYLOAD_TOO_DEEP: {
    family: "usage",
    summary: "A value is nested more deeply than can be recorded.",
    next: "Flatten the value, for example into a list of records that refer to each other by id.",
  },
  PAYLOAD_TOO_LARGE: {
    family: "usage",
    summary: "A value is larger than one recorded payload may be.",
    next: "Store the bulk elsewhere and record a reference to it, or split the value over several steps.",
  },
  PROMISE_ALREADY_RESOLVED: {
    family: "usage",
    summary: "A promise of a run was settled a second time with another value.",
    next: "Settle it once; the first value stands.",
  },
  QUEUE_NOT_FOUND: {
    family: "usage",
    summary: "There is no queue with this name in the store.",
    next: "Check the name, or start an engine whose definitions name the queue.",
  },
  RUN_ENDED: {
    family: "usage",
    summary: "The run has ended and takes no more messages.",
    next: "Read its result, or start a new run.",
  },
  RUN_NOT_FOUND: {
    family: "usage",
    summary: "No run has this id.",
    next: "Check the id and the store, or start the run first.",
  },
  SCHEDULE_NOT_FOUND: {
    family: "usage",
    summary: "No schedule has this name; it was never made, or was removed.",
    next: "Check the name and the store, or make the schedule with engine.schedule.",
  },
  START_CONFLICT: {
    family: "usage",
    summary: "A run with this id exists already, with another definition or another input.",
    next: "Use another id, or start it with exactly the same definition and input to get the existing run.",
  },
  UNKNOWN_DEFINITION: {
    family: "usage",
    summary: "No definition of this name is registered.",
    next: "Add it to `definitions` of the engine or worker; for the command line, export it from the file.",
  },
  UNKNOWN_PORT: {
    family: "usage",
    summary: "The definition declares no port of this name and kind.",
    next: "Declare it in `ports`, or correct the name.",
  },
  UNKNOWN_TASK: {
    family: "usage",
    summary: "No task of this name is registered.",
    next: "Add the task to `definitions` of the engine or worker.",
  },
  USAGE: {
    family: "usage",
    summary: "Something was called in a way it cannot work.",
    next: "Do what the message says.",
  },

  // determinism: the code of a definition must change, or go back
  DETERMINISM_VIOLATION: {
    family: "determinism",
    summary: "The code did something else than the journal recorded.",
    next: "Compare expected and actual in the details; restore the code, then resume the run.",
  },
  GRAPH_CHANGED: {
    family: "determinism",
    summary: "A graph's run needs a node or a channel that today's graph does not have.",
    next: "Put the node or channel back, or register the old graph beside the new one under another `version`; then resume the run.",
  },
  JOURNAL_TOO_LONG: {
    family: "determinism",
    summary: "A run's journal has reached the limit; what its code asks for next is not written.",
    next: "Continue with ctx.continueAsNew() before the journal gets that long (a graph: spread fewer items at once), or raise `limits.entries`; then resume the run.",
  },
  NONDETERMINISM: {
    family: "determinism",
    summary:
      "Workflow code used something that gives another answer on every replay: the clock, randomness, a timer, the network.",
    next: "Use the ctx call named in the message, or move the call into ctx.run(); then resume the run.",
  },
  REPLAY_MISMATCH: {
    family: "determinism",
    summary:
      "A recorded run of a graph does not replay with today's code: a node does something else than was recorded.",
    next: "Look at step, node, attempt, expected and actual in the details; correct the code, or record the run anew.",
  },
  STALLED: {
    family: "determinism",
    summary: "A workflow waits for a promise the engine does not own, so nothing recorded could ever wake it.",
    next: "Put what takes time into ctx.run() or a task, wait with ctx.sleep(), then resume the run.",
  },

  // store: the operator of the database must act
  PAYLOAD_KEY_MISSING: {
    family: "store",
    summary: "Payloads are encrypted with a key, or written with a codec, that this process was not given.",
    next: "Give every process the codec with the key named in the message, then resume what is blocked.",
  },
  PAYLOAD_UNREADABLE: {
    family: "store",
    summary: "The codec cannot bring a payload back: it has another key, or the bytes were changed or moved.",
    next: "Compare the key with the one the store was written with; if it is right, restore the store from a backup.",
  },
  STORE_BUSY: {
    family: "store",
    summary: "The store did not answer in time because others hold it.",
    next: "Look for a long transaction or a second program that holds the database; the call can be repeated.",
  },
  STORE_CORRUPT: {
    family: "store",
    summary: "The store holds something that cannot have been written by us.",
    next: "Stop the workers, copy the database, and run `reprise doctor`.",
  },
  STORE_FULL: {
    family: "store",
    summary: "The store has no room left to write.",
    next: "Free or add disk space; runs continue where they stopped.",
  },
  STORE_IO: {
    family: "store",
    summary: "Reading or writing the store failed.",
    next: "Check the disk, the permissions and the connection; the cause carries the error of the driver.",
  },
  STORE_LOCATION: {
    family: "store",
    summary: "The store lies where it cannot be kept safely, such as on a network file system or a standby server.",
    next: "Do what the message says: for a file a local disk, for a server its primary, reached directly.",
  },
  STORE_LOG_MISSING: {
    family: "store",
    summary: "The database file was copied or moved without its log (`-wal`), which holds everything written to it.",
    next: "Put the log beside the file while no process uses it; make copies with `reprise backup`, and bring one back with `reprise restore`.",
  },
  STORE_NEWER_SCHEMA: {
    family: "store",
    summary: "The store was written by a newer version than this one.",
    next: "Upgrade this program; it must not touch the store.",
  },
  STORE_NOT_REPRISE: {
    family: "store",
    summary: "The database belongs to another program.",
    next: "Name another file or database.",
  },
  STORE_OLDER_SCHEMA: {
    family: "store",
    summary: "The store was written by an older version or is new, and this call may not bring it up to date.",
    next: "Run `reprise migrate`, or open the store with an engine; of a server, take a dump before.",
  },
  STORE_REPLACED: {
    family: "store",
    summary:
      "The database file, its log (`-wal`) or the index of its log (`-shm`) was replaced or removed while it was open, or our tables were.",
    next: "Stop every process that uses the store, then start them again; put a backup in its place with `reprise restore`.",
  },
  STORE_ROLLED_BACK: {
    family: "store",
    summary: "The database went back to an earlier state, and a run that this process had started or read is gone.",
    next: "Run `reprise doctor` to see when, then start the lost runs again with the same ids.",
  },
  STORE_UNREACHABLE: {
    family: "store",
    summary: "The database server did not answer for longer than a call waits for it.",
    next: "Check that the server runs and that this machine reaches it; workers go on by themselves when it is back.",
  },
  STORE_UNSAFE_DURABILITY: {
    family: "store",
    summary: "The store does not keep acknowledged commits through a power cut.",
    next: 'Restore the durable settings named in the message, or ask for `durability: "relaxed"` by name.',
  },

  // outcome: how an attempt, a task or a run ended
  ATTEMPT_TIMEOUT: {
    family: "outcome",
    summary: "One attempt took longer than its timeout.",
    next: "Raise `timeout`, or make the attempt stop at ctx.abortSignal and let it be retried.",
  },
  BACKPRESSURE_TIMEOUT: {
    family: "outcome",
    summary: "A graph's run was paused: items of a step waited longer than `backpressureTimeout` for room.",
    next: "Find out what the nodes at work wait for, or give the graph more room (`maxConcurrentNodes`, `queueDepth`); then resume the run.",
  },
  CANCELLED: {
    family: "outcome",
    summary: "The run was cancelled.",
    next: "Nothing; clean up in `finally`.",
  },
  CHANNEL_CONFLICT: {
    family: "outcome",
    summary: 'Several nodes of one step changed a channel made with { conflict: "fail" }.',
    next: "Let one node change the channel, or give it a rule for several changes: last without the option, append, merge, max, or channel.",
  },
  DEADLINE_EXCEEDED: {
    family: "outcome",
    summary: "The run did not end within its deadline.",
    next: "Give it a longer deadline, or find out what took so long; `retry` gives a failed run its deadline anew.",
  },
  FATAL: {
    family: "outcome",
    summary: "User code said that repeating will not help.",
    next: "Read the message; nothing is tried again by itself. Once the cause is repaired, `reprise retry` goes on from there.",
  },
  MAX_ATTEMPTS_EXCEEDED: {
    family: "outcome",
    summary: "Every attempt the retry policy allows has failed.",
    next: "Read the cause, the failure of the last attempt, and repair it; then `reprise retry` or `run.retry()`, or start a new run.",
  },
  MAX_STEPS_EXCEEDED: {
    family: "outcome",
    summary: "A graph took as many steps as it may without coming to its end.",
    next: "Look for a loop that never ends; if there is none, raise `maxSteps` and `run.retry()`: it goes on from its last checkpoint.",
  },
  NODE_STOPPED: {
    family: "outcome",
    summary: "A node was told to stop because another node of its step failed for good.",
    next: "Read the error of the run: it names the node that failed.",
  },
  NO_PROGRESS: {
    family: "outcome",
    summary:
      "A graph has not come to its end and has nothing left to do: no condition holds, or its joins wait for each other.",
    next: "Add an edge without a condition as the last one of the nodes named, or take a join out of the circle; then `run.retry()`, or start a new run.",
  },
  RESULT_TIMEOUT: {
    family: "outcome",
    summary: "The result was not there in the time the caller would wait; the run goes on.",
    next: "Wait longer, or ask again later.",
  },
  RETRY_LATER: {
    family: "outcome",
    summary: "User code asked for another attempt after a given time.",
    next: "Nothing; the attempt is repeated when it is due.",
  },
  RUN_BLOCKED: {
    family: "outcome",
    summary:
      "The run was stopped: it asks for something that is not registered, its journal is damaged, or it kept killing workers.",
    next: "Read the details, remove the cause, then resume the run.",
  },
  RUN_FAILED: {
    family: "outcome",
    summary: "The run ended with an error.",
    next: "Read the cause and repair it; then `reprise retry` or `run.retry()`, or start a new run.",
  },
  UNDO_FAILED: {
    family: "outcome",
    summary: "The run failed or was cancelled, and not every step could be undone.",
    next: "Take back by hand the steps named in the details; the cause is what the run failed with.",
  },

  // invariant: we must act
  INVARIANT: {
    family: "invariant",
    summary: "Reprise found itself in a state that it holds to be impossible, and stopped before writing anything.",
    next: "Please report it with the message and the details.",
  },
} as const satisfies Record<string, { family: ErrorFamily; summary: string; next: string }>;

/** What `RepriseError.code` may be: `docs/errors` has a page for each. */
export type ErrorCode = keyof typeof ERROR_CATALOGUE;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_CATALOGUE, code);
}
