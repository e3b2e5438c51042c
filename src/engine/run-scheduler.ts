// run.scheduler: the state of a graph's scheduler, from the journal and, if this process holds the run, from memory.

import { RepriseError } from "../base/index.ts";
import type { RunRecord } from "../kernel/index.ts";
import { graphOfRun, SchedulerFold, schedulerOf, type SchedulerState } from "../graph/index.ts";
import type { RunHandleHost } from "./run-handle.ts";

const PAGE = 1_000;

export async function readScheduler(host: RunHandleHost, record: RunRecord): Promise<SchedulerState> {
  const { id, run, definition, kind, version } = record;
  const graph = graphOfRun(host.registry.getWorkflow(definition, version));
  if (graph === undefined)
    throw new RepriseError(
      "USAGE",
      `scheduler: run ${id} is a run of the ${kind} ${definition}; only graphs have a scheduler.`,
    );
  const fold = new SchedulerFold(graph);
  for (let after = 0; ;) {
    const page = await host.store.readJournal(run, after, PAGE);
    for (const entry of page) fold.add(entry);
    if (page.length < PAGE) break;
    after = page.at(-1)!.seq;
  }
  const hot = host.worker.findHot(run);
  const isHeld = hot?.token !== undefined && !hot.isDiscarded;
  return fold.state(isHeld ? schedulerOf(hot.execution)?.state() : undefined);
}
