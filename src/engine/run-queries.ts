// run.query: asks the code of a run what it knows, wherever the run is at work.
//
// Z1. Nothing is written and no turn is disturbed: the run that is in memory here answers as it stands between two
//     deliveries; otherwise its journal is replayed here, and that replay answers.
// Z2. A run held here first gets to see what was sent to it before the query: whoever signals and then asks sees the signal.

import { RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { answerQuery, driveThrough, entryData, Execution, indexJournal, type Stop } from "../workflow/index.ts";
import { News } from "./news.ts";
import { getPort, type Target } from "./run-messages.ts";

export async function queryRun(
  target: Target,
  getRecord: () => Promise<RunRecord>,
  name: string,
  given: unknown,
): Promise<unknown> {
  const { body, host } = target;
  getPort(body, name, "query");
  const args = entryData.encodeNamed(`What query ${name} is asked with`, given, host.limits);
  const live = await findLive(target, getRecord);
  if (live !== undefined) return answerQuery(live, name, args);
  const record = await getRecord();
  if (record.status === "expected")
    throw new RepriseError(
      "NO_QUERY_HANDLER",
      `Run ${record.id} is expected and has not been started: nobody can answer the query ${name} yet.`,
    );
  const { worker, timers, store, registry } = host;
  const code = registry.getWorkflow(record.definition, record.version);
  const recorded = indexJournal(await store.readJournal(record.run, 0));
  const facts = { id: record.id, generation: record.generation };
  const executionHost = { ...worker.runs.executionHost(record.id), log: () => {}, guard: undefined };
  // As lenient as can be: whoever asks wants an answer, not a verdict.
  const execution = new Execution(code, facts, recorded, "per-type", executionHost);
  await driveThrough(execution, recorded, timers);
  if (execution.stop?.status === "determinism_violation") throw cannotReplay(record.id, execution.stop);
  return answerQuery(execution, name, args);
}

/** The execution in memory here, when it stands where the journal does. */
async function findLive({ host, id }: Target, getRecord: () => Promise<RunRecord>): Promise<Execution | undefined> {
  const { worker, watchers, timers, store } = host;
  const news = new News();
  const leave = watchers.add(id, () => news.tell());
  try {
    for (let hasLooked = false; ;) {
      host.checkOpen();
      const moved = news.next();
      const record = await getRecord();
      // A macrotask: the code of no run is in the middle of anything.
      await new Promise<void>((resolve) => timers.soon(resolve));
      const { run, head, arrivals } = record;
      const hot = worker.runs.find(run);
      if (worker.runs.holds(run) && worker.works) {
        if (hot?.isCurrent === true && hot.read >= arrivals) return liveOf(hot.execution);
        await moved;
      } else if (!hasLooked && !hasEnded(record.status) && (await store.readInbox(run, 0)).length > 0) {
        // Z2. Its turn is due, and may be taken here: not longer than one look.
        hasLooked = true;
        await worker.pump.written();
      } else return hot?.isCurrent === true && hot.head === head ? liveOf(hot.execution) : undefined;
    }
  } finally {
    leave();
  }
}

function liveOf(execution: Execution): Execution | undefined {
  return execution.stop === undefined ? execution : undefined;
}

function cannotReplay(id: string, { message, where, expected, actual }: Stop): RepriseError {
  return new RepriseError(
    "DETERMINISM_VIOLATION",
    `Run ${id} cannot be asked: its journal does not fit today's code. ${message}.`,
    { details: { run: id, where, expected, actual } },
  );
}
