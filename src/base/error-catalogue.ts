// Error catalogue: every code of a RepriseError, sorted by who must act on it.
//
// error-catalogue.C1. A code is part of the public interface: its meaning never changes, and a code is never reused.
// error-catalogue.C2. `summary` says what happened and why it is refused; `next` is a command or a line of code where there
//   is one. docs/errors has a page for each code, and test/docs checks that it says the same.

import { FEDERATION_ERRORS } from "./federation-errors.ts";
import { SERVER_ERRORS } from "./server-errors.ts";

export type ErrorFamily = "usage" | "determinism" | "store" | "outcome" | "federation" | "invariant";

export const ERROR_CATALOGUE = {
  // usage: the caller must change the call
  BAD_CARRIER_URL: {
    family: "usage",
    summary: "The URL of a carrier is invalid, or no carrier supports it.",
    next: 'Write a folder ("/mnt/stick/history"), "https://host/path", "s3://bucket/prefix?region=eu-central-1" or "nats://host:4222/bucket".',
  },
  BAD_DURATION: {
    family: "usage",
    summary: 'A duration is neither a whole number of milliseconds nor a number with a unit, such as "5 minutes".',
    next: 'Write milliseconds, or a number and a unit (ms, s, m, h, d, or second, minute, hour, day, week): 500, "500ms", "30 s", "2 hours".',
  },
  BAD_FLOW: {
    family: "usage",
    summary:
      "Invalid flow: a node needs a value that is not declared above it, a name is used twice, or the flow has no output.",
    next: "Fix the node that the message names. `reprise graph <file>` draws the flow.",
  },
  BAD_FORMAT: {
    family: "usage",
    summary:
      "A text does not match its format: a field is missing, unknown or of another type, or a newer version wrote it.",
    next: "Fix the field at the path in the message. If a newer version wrote the text: `npm install reprise@latest`.",
  },
  BAD_GRAPH: {
    family: "usage",
    summary:
      "Invalid graph: an edge points to a missing node, a node has two unconditional edges, or a node changes an unknown channel.",
    next: "Fix the node or edge that the message names. `reprise graph <file>` draws the graph.",
  },
  BAD_ID: {
    family: "usage",
    summary: "A run id is empty, too long, or contains characters that a store cannot keep.",
    next: 'Use a string of 1 to 255 characters without control characters, such as `{ id: "order-7" }`.',
  },
  BAD_INPUT: {
    family: "usage",
    summary: "The input does not match the schema of the definition.",
    next: "Fix the input at the path in the message; `details.issues` lists every issue.",
  },
  BAD_NAME: {
    family: "usage",
    summary: "A name is empty, too long, or contains characters that a store cannot keep.",
    next: 'Use a string of 1 to 200 characters without control characters, such as `task("charge", …)`.',
  },
  BAD_OPTIONS: {
    family: "usage",
    summary: "An option is missing, unknown, of the wrong type, or out of range.",
    next: "Fix the option that the message names; the message says what it expects.",
  },
  BAD_PAYLOAD: {
    family: "usage",
    summary:
      "A value cannot be stored and read back unchanged: malformed Unicode, a `__proto__` key, or damaged payload text.",
    next: "Fix the value at the path in the message, for text with `text.toWellFormed()`. If the payload came from the store, run `reprise doctor`.",
  },
  BAD_POLICY: {
    family: "usage",
    summary: "A retry policy or a timeout cannot be applied.",
    next: 'Use `maxAttempts` of at least 1, `baseDelay` above 0, `maxDelay` of at least `baseDelay`, and `timeout` above 0: `{ retry: { maxAttempts: 5, baseDelay: "1 s" } }`.',
  },
  BAD_SCHEDULE: {
    family: "usage",
    summary: "A schedule is invalid: its pattern, interval, time zone or policies cannot be applied.",
    next: 'Pass either `cron` or `every`, with a pattern that matches a date and a known time zone: `{ cron: "0 3 * * *", timeZone: "Europe/Berlin" }`.',
  },
  BAD_STORE_URL: {
    family: "usage",
    summary: "The store URL is invalid, or no store supports it.",
    next: 'Write a URL whose scheme names a store: "sqlite:shop.db", "postgres://user:password@host/shop" or "mysql://user:password@host/shop".',
  },
  BAD_THREAD: {
    family: "usage",
    summary: "A LangGraph config has no `thread_id`, or one that a store cannot keep.",
    next: 'Pass the thread with every call: `app.invoke(input, { configurable: { thread_id: "order-7" } })`.',
  },
  CHECKPOINT_NOT_FOUND: {
    family: "usage",
    summary: "The run has no committed checkpoint for this step or label, or no such command.",
    next: "List its checkpoints (`reprise checkpoints <id>`, `run.checkpoints()`), or its commands: `reprise journal <id>`.",
  },
  DRIVER_MISSING: {
    family: "usage",
    summary: "The package that this database or carrier needs is not installed.",
    next: "Install the package that the message names: `npm install pg`, `npm install mysql2` or `npm install aws4fetch`.",
  },
  DUPLICATE_DEFINITION: {
    family: "usage",
    summary: "Two different definitions have the same name.",
    next: "Rename one of them, or pass only one to `definitions`.",
  },
  EFFECT_NOT_RECORDED: {
    family: "usage",
    summary: "A fork with recorded effects requested something that its origin has no recorded answer to.",
    next: 'Fork again with an answer for the command that the message names, or with `effects: "live"`.',
  },
  ENGINE_CLOSED: {
    family: "usage",
    summary: "The engine was used after it was closed.",
    next: "Close the engine last, or create a new one: `await using engine = await createEngine({ … })`.",
  },
  NODE_TOO_OLD: {
    family: "usage",
    summary: "The package was loaded on a version of Node that is too old for it.",
    next: "Use Node 24.15 or newer: `node --version` prints the version of your shell.",
  },
  NOT_DATA: {
    family: "usage",
    summary: "A value cannot be recorded because it is not plain data.",
    next: "Return plain objects, arrays, strings, numbers, bigint, Date, Map, Set, Uint8Array or Error: `await response.json()` instead of `response`.",
  },
  NOT_RETRYABLE: {
    family: "usage",
    summary: "The failed run cannot be retried: its steps were undone, or a child it waits for cannot be retried.",
    next: "Start a new run with the same input; `reprise show <id>` prints the input.",
  },
  NO_QUERY_HANDLER: {
    family: "usage",
    summary: "The run's code has not registered a handler for this query.",
    next: "Call `ctx.onQuery(name, handler)` at the top of the workflow, before its first `await`.",
  },
  PAYLOAD_TOO_DEEP: {
    family: "usage",
    summary: "A value is nested more than 256 levels deep.",
    next: "Flatten the value, for example into a list of records that refer to each other by id.",
  },
  PAYLOAD_TOO_LARGE: {
    family: "usage",
    summary: "A value is larger than the payload limit (8 MiB, or `limits.payload`).",
    next: "Store the data elsewhere (a file, an object store) and record a reference, or split it over several steps.",
  },
  PRICE_UNKNOWN: {
    family: "usage",
    summary: "A model without a price was called in a run whose budget has a cap in dollars.",
    next: "Add the price to `prices` of `durable(ctx, …)`, in US dollars per million tokens, and `reprise retry <id>`.",
  },
  PROMISE_ALREADY_RESOLVED: {
    family: "usage",
    summary: "The promise already has another value; the run keeps the first one.",
    next: "Show the caller what was decided: the message names the first value and who sent it. For several decisions in one run, give each promise a `key`; for several values, declare `signal()` instead of `promise()`.",
  },
  QUEUE_NOT_FOUND: {
    family: "usage",
    summary: "The store has no queue with this name.",
    next: "List the queues: `reprise queue list`, or `engine.listQueues()`.",
  },
  RUN_ENDED: {
    family: "usage",
    summary: "The run has ended and accepts no messages.",
    next: "Read its result with `run.result()`, or start a new run.",
  },
  RUN_IN_USE: {
    family: "usage",
    summary:
      "The run cannot be deleted: it or a run it started has not ended or has messages to deliver, a fork reads its steps, or it belongs to another run.",
    next: "Wait for the end of the run that the message names, or end it with `reprise terminate <id>`; delete forks before their origin, and a parent instead of its child.",
  },
  RUN_NOT_FOUND: {
    family: "usage",
    summary: "The store has no run with this id.",
    next: "Check the id and the store: `reprise list`. Start the run first, or send with `{ beforeStart: true }`.",
  },
  SCHEDULE_NOT_FOUND: {
    family: "usage",
    summary: "The store has no schedule with this name.",
    next: "List the schedules: `reprise schedule list`. Create one: `engine.schedule(name, definition, input, { cron })`.",
  },
  START_CONFLICT: {
    family: "usage",
    summary: "A run with this id exists, with another definition or another input.",
    next: "Use another id, start with the same definition and input, or use the existing run: `engine.get(definition, id)`.",
  },
  UNKNOWN_DEFINITION: {
    family: "usage",
    summary: "No definition with this name is registered.",
    next: "Add it to `definitions` of `createEngine`; for the command line, export it from the file. Then `reprise resume <id>` if a run is blocked.",
  },
  UNKNOWN_PORT: {
    family: "usage",
    summary: "The definition declares no port with this name and kind.",
    next: "Declare it: `workflow(name, { ports: { approval: promise() } }, …)`, or use a name that the message lists.",
  },
  UNKNOWN_TASK: {
    family: "usage",
    summary: "No task with this name is registered.",
    next: "Add the task to `definitions` of `createEngine`, then `reprise resume <id>`.",
  },
  USAGE: {
    family: "usage",
    summary: "Invalid call. The message says what to change.",
    next: "Change the call as the message says. `reprise <command> --help` lists the options of a command, `GET /openapi.json` the requests of a server.",
  },

  // usage of the HTTP server
  ...SERVER_ERRORS,

  // determinism: the author of the definition must change its code, or restore the earlier code
  DETERMINISM_VIOLATION: {
    family: "determinism",
    summary: "The code does not match the journal: it requested another step than the one recorded.",
    next: "Restore the code, or put the change behind `ctx.patched()`; then `reprise resume <id>`.",
  },
  GRAPH_CHANGED: {
    family: "determinism",
    summary: "The run needs a node or a channel that the current graph does not have.",
    next: "Restore the node or channel, or register the old graph as another `version`; then `reprise resume <id>`.",
  },
  JOURNAL_TOO_LONG: {
    family: "determinism",
    summary:
      "The run's journal has reached the limit of entries (`limits.entries`), and the engine records no further step.",
    next: "Call `ctx.continueAsNew()` before the limit (in a graph, spread fewer items at once), or raise `limits.entries`; then `reprise resume <id>`.",
  },
  MIGRATION_REFUSED: {
    family: "determinism",
    summary:
      "The run cannot continue with that version of its definition: its journal does not fit the version's code.",
    next: "Compare `expected` and `actual` in the details. Change the new version so that it fits, for example with `ctx.patched()`, or let the run end with its own version.",
  },
  NONDETERMINISM: {
    family: "determinism",
    summary:
      "Workflow code called a function that returns a different value on replay: the clock, randomness, a timer or the network.",
    next: "Use the `ctx` call that the message names, or move the call into `ctx.run()`; then `reprise resume <id>`.",
  },
  REPLAY_MISMATCH: {
    family: "determinism",
    summary: "A recorded run of a graph does not replay with the current code: a node behaves differently.",
    next: "Compare `expected` and `actual` in the details, then fix the code or record the run again. `reprise replay <id> <file> --lenient` lists all differences.",
  },
  STALLED: {
    family: "determinism",
    summary: "The workflow awaits a promise that the engine does not own, so no recorded event can resume it.",
    next: "Move the call into `ctx.run()` or a task, and wait with `ctx.sleep()`; then `reprise resume <id>`.",
  },

  // store: the operator of the database must act
  PAYLOAD_DAMAGED: {
    family: "store",
    summary: "A part of a payload, stored apart from its row, was changed: its digest is another one.",
    next: "Restore the store, the folder or the bucket from a backup; `reprise doctor` lists the runs that need it.",
  },
  PAYLOAD_KEY_MISSING: {
    family: "store",
    summary: "A payload is encrypted with a key, or written with a codec, that this process does not have.",
    next: "Add the key to `keys` of `aesGcm()` in every process (on the command line, `--codec <file>`), then `reprise resume <id>` for blocked runs.",
  },
  PAYLOAD_MISSING: {
    family: "store",
    summary: "A part of a payload, stored apart from its row, is not where it should be.",
    next: "Restore the store, the folder or the bucket from a backup; `reprise doctor` lists the runs that need it.",
  },
  PAYLOAD_UNREADABLE: {
    family: "store",
    summary: "The codec cannot decode a payload: its key differs, or the bytes were changed or moved.",
    next: "Compare the key with the one that wrote the store. If it is right, restore the store: `reprise restore <backup>`.",
  },
  STORE_BUSY: {
    family: "store",
    summary: "The store did not respond in time because another program holds a lock.",
    next: "Find the program that holds the lock (`lsof shop.db`, `pg_stat_activity`) and end its transaction; then repeat the call.",
  },
  STORE_CORRUPT: {
    family: "store",
    summary: "The store contains data that Reprise did not write, or lost data that it wrote.",
    next: "Stop the workers, copy the database, and run `reprise doctor`; then `reprise restore <backup>`.",
  },
  STORE_FOLDER_MISSING: {
    family: "store",
    summary: "The folder of a new SQLite file does not exist.",
    next: "Check the path. Create the folder with `mkdir -p`, or add `?mkdir=1` to the store URL.",
  },
  STORE_FULL: {
    family: "store",
    summary: "The store has no space left to write.",
    next: "Free or add disk space, for example with `reprise prune --older-than 30d`; workers then continue automatically.",
  },
  STORE_IO: {
    family: "store",
    summary: "Reading or writing the store failed.",
    next: "Check the disk, the permissions and the connection; `error.cause` is the driver's error.",
  },
  STORE_IS_MIRROR: {
    family: "store",
    summary:
      "The store is a mirror: it holds copies of runs of another store, which no worker runs and no command changes.",
    next: "Change the run in its own store: name it with --store. `reprise pull` then brings the new state into the mirror.",
  },
  STORE_LOCATION: {
    family: "store",
    summary:
      "The store's location is not safe: a network file system, a standby server, a connection pooler or an unsupported server.",
    next: "Move a SQLite file to a local disk; for a server, connect to its primary directly. The message says which.",
  },
  STORE_LOG_MISSING: {
    family: "store",
    summary: "The database file was copied or moved without its log (`-wal`), which holds everything written to it.",
    next: "Put the log beside the file while no process uses it. Make copies with `reprise backup`, and restore them with `reprise restore`.",
  },
  STORE_NEWER_SCHEMA: {
    family: "store",
    summary: "A newer version of Reprise wrote the store; this version must not write to it.",
    next: "Upgrade this program: `npm install reprise@latest`.",
  },
  STORE_NOT_REPRISE: {
    family: "store",
    summary: "The database belongs to another program.",
    next: "Name another file or database with `--store`, `REPRISE_STORE` or the `store` option.",
  },
  STORE_OLDER_SCHEMA: {
    family: "store",
    summary: "An older version wrote the store, or the database is new, and this call does not migrate it.",
    next: "Back up a server's database, then run `reprise migrate`.",
  },
  STORE_READ_ONLY: {
    family: "store",
    summary: "The store cannot be written: its file, its folder or its disk is read-only, or it was opened to read.",
    next: "Check the permissions of the file and its folder. `reprise list`, `show`, `journal`, `top` and `doctor` read it as it is.",
  },
  STORE_REPLACED: {
    family: "store",
    summary:
      "The database file, its log (`-wal`), the log's index (`-shm`) or Reprise's tables were replaced or removed while the store was open.",
    next: "Stop every process that uses the store, then start them again. Replace a store with `reprise restore <backup>`.",
  },
  STORE_ROLLED_BACK: {
    family: "store",
    summary:
      "The database went back to an earlier state, and a run that this process had started or read no longer exists.",
    next: "Run `reprise doctor` to see when, then start the lost runs again with the same ids.",
  },
  STORE_UNREACHABLE: {
    family: "store",
    summary: "The database server did not respond within the time limit of the call.",
    next: "Check that the server runs and that this machine reaches it (`pg_isready -h <host>`, `mysqladmin -h <host> ping`); workers then continue automatically.",
  },
  STORE_UNSAFE_DURABILITY: {
    family: "store",
    summary: "The store's settings would lose acknowledged commits in a power failure.",
    next: 'Restore the settings that the message names, or accept the loss: `createEngine({ durability: "relaxed" })`.',
  },

  // outcome: the author of the run's code, or the operator, must act
  ATTEMPT_TIMEOUT: {
    family: "outcome",
    summary: "An attempt ran longer than its `timeout`.",
    next: 'Raise it, `{ timeout: "5 minutes" }`, or call `ctx.heartbeat()` while the work makes progress.',
  },
  BACKPRESSURE_TIMEOUT: {
    family: "outcome",
    summary:
      "The engine paused a graph's run: items of a step waited longer than `backpressureTimeout` for a free slot.",
    next: "Find out what the running nodes wait for (`reprise show <id>`), or raise `maxConcurrentNodes` or `queueDepth`; then `reprise resume <id>`.",
  },
  BUDGET_ESTIMATE: {
    family: "outcome",
    summary:
      "An answer cost more than its call had reserved. All of it is spent, so the run may have passed its budget.",
    next: "Make `cost.reserve` an upper bound: the largest cost that the call can have.",
  },
  BUDGET_REACHED: {
    family: "outcome",
    summary: "A call was not made, because what it would reserve does not fit into the budget of its run.",
    next: "Raise the budget, `reprise raise <id> --usd 2`, and `reprise retry <id>`; or let the call cost less.",
  },
  CANCELLED: {
    family: "outcome",
    summary: "The run was cancelled.",
    next: "Nothing. To clean up, use `finally`, and `ctx.shield(() => …)` for cleanup that waits.",
  },
  CHANNEL_CONFLICT: {
    family: "outcome",
    summary: 'Several nodes of one step changed a channel that allows one change: `{ conflict: "fail" }`.',
    next: "Let one node change the channel, or give it a reducer for several changes: `last` without the option, `append`, `merge`, `max` or `channel`.",
  },
  DEADLINE_EXCEEDED: {
    family: "outcome",
    summary: "The run did not end within its deadline.",
    next: '`reprise show <id>` says what it waited for. `reprise retry <id>` gives it a new deadline; start runs with a longer one: `{ deadline: "2 days" }`.',
  },
  FATAL: {
    family: "outcome",
    summary: "User code threw `FatalError`: another attempt cannot help, so the engine does not retry.",
    next: "Fix the cause that the message names, then `reprise retry <id>`.",
  },
  MAX_ATTEMPTS_EXCEEDED: {
    family: "outcome",
    summary: "All attempts that the retry policy allows have failed.",
    next: "Fix the cause (`error.cause` is the last failure, `reprise show <id>` lists all), then `reprise retry <id>`.",
  },
  MAX_STEPS_EXCEEDED: {
    family: "outcome",
    summary: "The graph took `maxSteps` steps without reaching its end.",
    next: "Find the loop with `reprise show <id>`. If there is none, raise `maxSteps`; then `reprise retry <id>` continues from the last checkpoint.",
  },
  NODE_STOPPED: {
    family: "outcome",
    summary: "The engine stopped this node because another node of the same step failed.",
    next: "Fix the node that failed: `reprise show <id>` names it. Then `reprise retry <id>`.",
  },
  NO_PROGRESS: {
    family: "outcome",
    summary:
      "The graph has not reached its end and has nothing left to run: no condition holds, or its joins wait for each other.",
    next: "Add an unconditional edge as the last one of the nodes that the message names, or remove a join from the cycle; then `reprise retry <id>`.",
  },
  RESULT_STUCK: {
    family: "outcome",
    summary:
      "A test awaits the result of a run that cannot continue without the test: it waits for a message or for time.",
    next: "Do what the message names before you await the result, such as `run.resolve(…)` or `engine.clock.advance(…)`.",
  },
  RESULT_TIMEOUT: {
    family: "outcome",
    summary: "The run did not end within the `timeout` of the caller; it is still in progress.",
    next: "Call `result()` again, with a longer `timeout` or later.",
  },
  RETRY_LATER: {
    family: "outcome",
    summary: "User code threw `RetryLaterError` to request another attempt after a delay.",
    next: "Nothing; a worker starts the next attempt when it is due.",
  },
  RUN_BLOCKED: {
    family: "outcome",
    summary:
      "The engine stopped the run: it requests unregistered code, its code stalls, its journal is damaged, or its workers kept dying.",
    next: "Fix the cause: `reprise explain <details.code>` describes it. Then `reprise resume <id>`.",
  },
  RUN_FAILED: {
    family: "outcome",
    summary: "The run ended with an error.",
    next: "Fix the cause (`error.cause`, or `reprise show <id>`), then `reprise retry <id>` or `run.retry()`.",
  },
  UNDO_FAILED: {
    family: "outcome",
    summary: "The run failed or was cancelled, and the undo of some steps failed.",
    next: "Undo the steps in `details` manually; `error.cause` is why the run failed.",
  },

  // federation: the maker of the bundle, or the operator of the other site, must act
  ...FEDERATION_ERRORS,

  // invariant: the maintainers of Reprise must act
  INVARIANT: {
    family: "invariant",
    summary: "Reprise detected a state that its rules exclude, and stopped before it wrote anything.",
    next: "Report it with the message, the details and, if possible, a copy of the store: `reprise backup`.",
  },
} as const satisfies Record<string, { family: ErrorFamily; summary: string; next: string }>;

/** What `RepriseError.code` may be: `docs/errors` has a page for each. */
export type ErrorCode = keyof typeof ERROR_CATALOGUE;

export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === "string" && Object.hasOwn(ERROR_CATALOGUE, code);
}
