// run.query: asks the code of a run. The run may be held by any worker, or have ended.
//
// run-queries.Q1. A query writes nothing and disturbs no turn: a run that is in memory here answers between two deliveries;
//   otherwise its journal is replayed here, and that replay answers.
// run-queries.Q2. A run held here first receives the messages sent before the query: a caller that sends a signal and then
//   queries sees the signal.

import { checkOptionNames, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import {
  answerQuery,
  driveThrough,
  entryData,
  Execution,
  indexJournal,
  readHistory,
  type Stop,
} from "../workflow/index.ts";
import { checkSignal, unlessAborted } from "./abort.ts";
import type { QueryOptions } from "./api.ts";
import { getPort, type RunTarget } from "./run-messages.ts";
import { RunWatch } from "./run-watch.ts";

export async function queryRun(
  target: RunTarget,
  getRecord: () => Promise<RunRecord>,
  name: string,
  given: unknown,
  options: QueryOptions = {},
): Promise<unknown> {
  getPort(target.body, name, "query");
  checkOptionNames(options, ["signal"], `query ${name}`);
  const signal = checkSignal(options.signal, `query ${name}`);
  signal?.throwIfAborted();
  return unlessAborted(signal, askRun(target, getRecord, name, given, signal));
}

async function askRun(
  target: RunTarget,
  getRecord: () => Promise<RunRecord>,
  name: string,
  given: unknown,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const { host } = target;
  const args = entryData.encodeNamed(`What query ${name} is asked with`, given, host.limits);
  const live = await findLive(target, getRecord, signal);
  if (live !== undefined) return answerQuery(live, name, args);
  const record = await getRecord();
  if (record.status === "expected")
    throw new RepriseError(
      "NO_QUERY_HANDLER",
      `Run ${record.id} has not been started yet, so its code cannot answer the query ${name}. Start it first.`,
    );
  const { timers, store, registry } = host;
  const code = registry.getWorkflow(record.definition, record.version);
  const recorded = indexJournal(await readHistory(store, record.run));
  const identity = { id: record.id, generation: record.generation };
  const executionHost = { ...host.executionHost, log: () => {}, guard: undefined };
  // The most lenient mode: the caller wants an answer, not a check of the code.
  const execution = new Execution(code, identity, recorded, "per-type", executionHost);
  await driveThrough(execution, recorded, timers);
  const { stop } = execution;
  // Code that stops where the run itself is stopped has its state; code that stops earlier, here only, has an old one.
  if (stop !== undefined && (stop.status === "determinism_violation" || stop.status !== record.status))
    throw cannotReplay(record.id, stop);
  return answerQuery(execution, name, args);
}

/** The execution in memory here, if it is at the head of the journal. */
async function findLive(
  { host, id }: RunTarget,
  getRecord: () => Promise<RunRecord>,
  signal: AbortSignal | undefined,
): Promise<Execution | undefined> {
  const { worker, watchers, timers, store } = host;
  using watch = new RunWatch(watchers, id, signal);
  for (let hasWaitedForClaim = false; ;) {
    host.checkOpen();
    signal?.throwIfAborted();
    const changed = watch.next();
    const record = await getRecord();
    // After a macrotask no run's code is in the middle of a delivery.
    await new Promise<void>((resolve) => timers.soon(resolve));
    const { run, head, arrivals } = record;
    const hot = worker.findHot(run);
    if (worker.holds(run) && worker.works) {
      if (hot?.isCurrent === true && hot.read >= arrivals) return liveOf(hot.execution);
      await changed;
    } else if (!hasWaitedForClaim && !hasEnded(record.status) && (await store.readInbox(run, 0)).length > 0) {
      // run-queries.Q2. Its turn is due and this worker may claim it: wait for one attempt to claim.
      hasWaitedForClaim = true;
      await worker.flushed();
    } else return hot?.isCurrent === true && hot.head === head ? liveOf(hot.execution) : undefined;
  }
}

function liveOf(execution: Execution): Execution | undefined {
  return execution.stop === undefined ? execution : undefined;
}

function cannotReplay(id: string, { code, message, where, expected, actual }: Stop): RepriseError {
  const reason = code === "DETERMINISM_VIOLATION" ? "its journal does not match the current code: " : "";
  return new RepriseError(code, `Run ${id} cannot answer the query: ${reason}${message}`, {
    details: { run: id, where, expected, actual },
  });
}
