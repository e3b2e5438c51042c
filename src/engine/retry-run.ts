// Retry: a failed run continues from where it failed, together with the failed children it waits for.

import { CancelledError, RepriseError } from "../base/index.ts";
import {
  decodeData,
  hasEnded,
  lastExecutions,
  type Arrival,
  type Entry,
  type RunStartedData,
  type NewItem,
  type RetryWrite,
  type RunNumber,
  type RunRecord,
} from "../kernel/index.ts";
import { planFlowRetry } from "../flow/index.ts";
import { entryData, planRetry, readHistory, type PlannedRetry, type RetryPlan } from "../workflow/index.ts";
import type { ControlledRun } from "./run-control.ts";
import type { RunHandleHost } from "./run-handle.ts";

/** How often a plan is remade because the run or a child changed meanwhile. */
const MAX_TRIES = 5;

export async function retryRun({ host, id }: ControlledRun): Promise<void> {
  const { worker } = host;
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    host.checkOpen();
    const record = await host.store.findRun(id);
    if (record === undefined)
      throw new RepriseError("RUN_NOT_FOUND", `There is no run ${id}. Check the id and the store.`);
    if (record.status !== "failed")
      throw new RepriseError("USAGE", `Run ${id} is ${record.status}; only a failed run can be retried.`);
    const writes = await writesFor(host, record);
    // Submitted together they share a transaction, children first.
    const outcomes = await Promise.all(writes.map((write) => worker.submit(write)));
    for (const [index, { run, items }] of writes.entries())
      if (outcomes[index]?.status === "committed") worker.onRetried(run, items);
    const taken = outcomes.find((outcome) => outcome.status === "taken");
    if (taken !== undefined)
      throw new RepriseError(
        "NOT_RETRYABLE",
        `Run ${id} cannot be retried: run ${taken.by} has its singleton key. Wait until that run has ended.`,
      );
    if (outcomes.at(-1)?.status === "committed") return;
  }
  throw new RepriseError("USAGE", `Run ${id} changed ${MAX_TRIES} times during the retry. Call retry() again.`);
}

/** The writes that reopen a run, those of its failed children first. */
async function writesFor(host: RunHandleHost, record: RunRecord): Promise<readonly RetryWrite[]> {
  const { run, head, id } = record;
  const entries = await (record.kind === "workflow" ? readHistory(host.store, run) : host.store.readJournal(run, 0));
  const plan = await planFor(host, record, entries);
  if (plan.status === "refused")
    throw new RepriseError("NOT_RETRYABLE", `Run ${id} cannot be retried: ${plan.reason}.`);
  const before: RetryWrite[] = [];
  const children: RunNumber[] = [];
  const answers: Arrival[] = [];
  const executed = lastExecutions(entries, await host.store.readAttempts(run));
  const items = [...itemsOf(host, record, plan, executed)];
  for (const { command, id: childId, item } of plan.children) {
    const child = await host.store.findRun(childId);
    if (child?.parent === run && child.status === "failed") before.push(...(await writesFor(host, child)));
    const isCancelled = child?.parent === run && child.status === "cancelled";
    if (isCancelled && item !== undefined) items.push(item);
    else if (child?.parent === run && (child.status === "failed" || !hasEnded(child.status))) children.push(child.run);
    else answers.push(await answerOf(host, command, childId, child?.parent === run ? child : undefined));
  }
  const { deadlineMs, promises, reopened, settlements } = plan;
  const { line, singleton } = await startedWith(host, record);
  const write: RetryWrite = {
    write: "retry",
    run,
    head,
    data: entryData.runRetriedData(plan, await host.store.readEmitted(run)),
    items,
    ...(deadlineMs !== undefined && { deadlineMs }),
    ...(reopened.length > 0 && { reopened }),
    ...(promises.length > 0 && { promises }),
    ...(settlements.length > 0 && { settlements }),
    ...(line && { slot: line }),
    ...(singleton !== undefined && { singleton }),
    children,
    answers,
  };
  return [...before, write];
}

async function planFor({ store }: RunHandleHost, record: RunRecord, entries: readonly Entry[]): Promise<PlannedRetry> {
  if (record.kind !== "flow") return planRetry(entries);
  return planFlowRetry({ record, entries, readiness: await store.readReadiness(record.run) });
}

/** The queue slot and the singleton key of the run, from its first generation. */
async function startedWith(
  { store }: RunHandleHost,
  { id, generation, run }: RunRecord,
): Promise<Partial<Pick<RunStartedData, "line" | "singleton">>> {
  const first = generation === 0 ? run : (await store.findRun(id, 0))?.run;
  const [started] = first === undefined ? [] : await store.readJournal(first, 0, 1);
  return started === undefined ? {} : decodeData("RunStarted", started.data);
}

/** The answer of an ended child, sent again; undefined `child`: its id belongs to another run. */
async function answerOf(
  { store }: RunHandleHost,
  command: string,
  id: string,
  child: RunRecord | undefined,
): Promise<Arrival> {
  if (child?.status === "completed") {
    const [last] = await store.readJournal(child.run, child.head - 1, 1);
    const output = last === undefined ? undefined : decodeData("RunCompleted", last.data).output;
    const data = entryData.childCompletedData(id, entryData.encodeInput(output));
    return { type: "ChildWorkflowCompleted", target: command, data };
  }
  const data =
    child === undefined
      ? entryData.childIdTakenData(id)
      : entryData.childFailedData(id, new CancelledError(`Run ${id} was cancelled.`));
  return { type: "ChildWorkflowFailed", target: command, data };
}

/** Each item in the queue of its definition. */
function itemsOf(
  { registry }: RunHandleHost,
  record: RunRecord,
  { tasks, items }: RetryPlan,
  executed: ReadonlyMap<string, number>,
): readonly NewItem[] {
  const queued: readonly NewItem[] = [
    ...tasks.map(({ input, ...item }) => ({ ...item, ...registry.queueing(item.name, input) })),
    ...items.map((item) =>
      item.kind === "node" ? { ...item, ...registry.nodeQueueing(record.definition, record.version, item.item) } : item,
    ),
  ];
  return queued.map((item) => {
    const executions = executed.get(item.item);
    return executions === undefined || item.kind === "timer" ? item : { ...item, executions };
  });
}
