// TurnStarts: brings runs into memory: claimed turns, new runs, children and next generations that a commit leased to this worker.

import { encode, invariant } from "../base/index.ts";
import {
  emit,
  emitEnded,
  isObserved,
  type ClaimedTurn,
  type Entry,
  type InboxRow,
  type NewChild,
  type NextGeneration,
  type RunNumber,
  type RunRecord,
} from "../kernel/index.ts";
import { executionHostOf, firstEntryOf } from "../process/index.ts";
import {
  Execution,
  freshJournal,
  type ExecutionHost,
  type RecordedJournal,
  type WorkflowBody,
} from "../workflow/index.ts";
import { HotRun } from "./hot-run.ts";
import { loadRun } from "./load-run.ts";
import type { LoadingRun } from "./loading-runs.ts";
import { endNotStarted, findEarlyCancel } from "./not-started.ts";
import type { Parts } from "./worker-parts.ts";

export class TurnStarts {
  readonly #parts: Parts;
  readonly #executionHost: ExecutionHost;

  constructor(parts: Parts) {
    this.#parts = parts;
    const { registry, guard, log } = parts.options;
    this.#executionHost = executionHostOf({ storeKind: parts.store.kind, registry, guard, log });
  }

  /**
   * Starts a claimed turn: of a cached run at once, of another one after its replay. `tasks`: how many tasks of the run were claimed
   * with the turn, and start next.
   */
  start(turn: ClaimedTurn, tasks = 0): void {
    const { runs, stopper, flows, persistentWrites, log, options } = this.#parts;
    const { record, token, inbox } = turn;
    try {
      checkTurn(turn);
    } catch (error) {
      return stopper.stopClaimed(record, token, error);
    }
    const earlyCancel = findEarlyCancel(inbox);
    if (earlyCancel !== undefined) return this.#endNotStarted(turn, earlyCancel);
    if (record.kind === "flow") return flows.startTurn(turn);
    const cached = runs.find(record.run);
    if (cached !== undefined && !cached.isDiscarded && cached.matches(record)) {
      cached.reacquire(token, readBefore(record, inbox), tasks);
      runs.hold(cached);
      return runs.applyInbox(cached, inbox);
    }
    if (cached !== undefined) runs.forget(cached);
    const loading = runs.loading.begin(record.run);
    this.#load(record, token, inbox, loading).catch((error: unknown) => {
      runs.loading.end(record.run, loading);
      log.report(error);
      persistentWrites.returnTurn(record.run, token, error);
      options.onUnheld(record);
    });
  }

  /** After a failed write the turn is claimed again, and ends again. */
  #endNotStarted(turn: ClaimedTurn, cancel: InboxRow): void {
    const { pump, runs, store, events, log, persistentWrites } = this.#parts;
    const { record, token } = turn;
    const write = endNotStarted(turn, cancel, this.#parts);
    const giveBack = (): void => persistentWrites.submit({ write: "return-turn", run: record.run, token });
    pump.submit(write).then(
      ({ status }) => {
        if (status !== "committed") return giveBack();
        for (const { to } of write.messages) if (typeof to === "number") runs.arrived(to);
        if (isObserved()) emitEnded(record, write.then, store.now());
        events.ended(record, write.then, write.entries.at(-1)!);
      },
      (error: unknown) => {
        log.report(error);
        giveBack();
      },
    );
  }

  /** Replays a run that is not in memory. */
  async #load(record: RunRecord, token: string, inbox: readonly InboxRow[], loading: LoadingRun): Promise<void> {
    const { runs, control, stopper, registry, options, persistentWrites, drain, log } = this.#parts;
    const body = registry.getWorkflow(record.definition, record.version);
    const { epoch } = runs;
    const loaded = await loadRun(options, record, body, (recorded) => this.#newExecution(body, record, recorded));
    // held-runs.R1. The token of an earlier claim is no longer valid.
    if (!runs.loading.end(record.run, loading) || this.#parts.isStopped) return;
    if (epoch !== runs.epoch) {
      persistentWrites.submit({ write: "return-turn", run: record.run, token });
      return options.onUnheld(record);
    }
    if (loaded.status === "unfit") {
      const { code, message, seq } = loaded;
      const evidence = encode({ code, message, seq, status: "blocked", where: `entry ${seq}` });
      return stopper.stopWith(record, token, evidence, "blocked", message);
    }
    const { execution, isNew, size } = loaded;
    if (isObserved()) {
      const { id: run, definition, head: entries } = record;
      emit(isNew ? { event: "run.started", run, definition } : { event: "run.resumed", run, definition, entries });
    }
    const tasks = this.#parts.tasks.countLocal(record.run) + loading.results.length;
    const hot = this.#hold(record, execution, token, { read: readBefore(record, inbox), size, tasks });
    if (loading.paused) control.setPaused(hot, true);
    if (drain.isDraining) hot.pause();
    runs.applyInbox(hot, inbox);
    if (!loading.arrived) return;
    runs.loadInbox(hot);
    control.refresh([hot]).catch((error: unknown) => log.report(error));
  }

  // ── runs that a commit leased to this worker ──

  /** Starts a new run. */
  adopt(record: RunRecord, first: Entry, token: string): void {
    const { drain, persistentWrites, registry, runs } = this.#parts;
    if (drain.isDraining) return persistentWrites.submit({ write: "return-turn", run: record.run, token });
    if (record.kind === "flow") return this.#adoptFlow(record, first, token);
    const body = registry.getWorkflow(record.definition, record.version);
    const execution = this.#newExecution(body, record, freshJournal(first));
    if (isObserved()) emit({ event: "run.started", run: record.id, definition: record.definition });
    execution.start();
    execution.caughtUp();
    const hot = this.#hold(record, execution, token, { read: 0, size: first.data.length, tasks: 0 });
    if (record.arrivals > 0) runs.loadInbox(hot);
  }

  #adoptFlow(record: RunRecord, first: Entry, token: string): void {
    if (record.arrivals === 0) return this.#parts.flows.adopt(record, first, token);
    this.#readThenStart(record, token, () => {});
  }

  /** Starts the children that the commit leased to this worker; the others are claimed. */
  adoptChildren(requested: readonly NewChild[], started: readonly RunRecord[]): void {
    if (requested.length === 0) return;
    const records = new Map(started.map((record) => [record.id, record]));
    for (const { run, claim } of requested) {
      const record = records.get(run.id);
      if (record === undefined) continue;
      if (run.deadlineMs !== undefined) this.#parts.poller.dueAt(record.createdAt + run.deadlineMs);
      if (claim !== undefined) this.adopt(record, firstEntryOf(run, record), claim.token);
      else this.#parts.claimer.request(run.slot === undefined ? "turns" : "starts");
    }
  }

  /** Starts the next generation here, if the commit leased it to this worker. */
  adoptNext(next: NextGeneration | undefined, record: RunRecord | undefined): void {
    if (next === undefined || record === undefined || record.status === "paused") return;
    if (next.claim === undefined) return this.#parts.claimer.request("turns");
    const { token } = next.claim;
    if (record.arrivals === 0) return this.adopt(record, firstEntryOf(next, record), token);
    const { loading } = this.#parts.runs;
    const begun = loading.begin(record.run);
    this.#readThenStart(record, token, () => void loading.end(record.run, begun));
  }

  /** Reads the inbox first, so that code that never waits still sees a cancel. */
  #readThenStart(record: RunRecord, token: string, failed: () => void): void {
    const { store, log, persistentWrites } = this.#parts;
    store.readInbox(record.run, 0).then(
      (inbox) => this.start({ record, token, inbox, suspicion: 0 }),
      (error: unknown) => {
        failed();
        log.report(error);
        persistentWrites.submit({ write: "return-turn", run: record.run, token });
      },
    );
  }

  // ── executions ──

  /** A second execution of the run's code, without log output. */
  replay({ record, execution }: HotRun, recorded: RecordedJournal): Execution {
    const host = { ...this.#executionHost, log: () => {} };
    return this.#newExecution(execution.body, record, recorded, host);
  }

  #newExecution(
    body: WorkflowBody,
    record: RunRecord,
    recorded: RecordedJournal,
    host = this.#executionHost,
  ): Execution {
    const determinism = body.determinism ?? this.#parts.options.determinism;
    const given = body.drive === undefined ? host : { ...host, ...this.#nodeEvents(record.run) };
    return new Execution(body, record, recorded, determinism, given);
  }

  #nodeEvents(run: RunNumber): Pick<ExecutionHost, "onNodeRequest" | "onNodeWaiting"> {
    const { runs } = this.#parts;
    return {
      onNodeRequest: () => runs.find(run)?.nodes?.onCommand(),
      onNodeWaiting: (command, isWaiting) => runs.find(run)?.nodes?.setWaiting(command, isWaiting),
    };
  }

  #hold(
    record: RunRecord,
    execution: Execution,
    token: string,
    { read, size, tasks }: { readonly read: number; readonly size: number; readonly tasks: number },
  ): HotRun {
    const hot = new HotRun(record, execution, this.#parts, token, read, tasks);
    hot.journal.size = size;
    this.#parts.runs.hold(hot);
    return hot;
  }
}

function checkTurn({ record: { run, head }, token, inbox }: ClaimedTurn): void {
  invariant(run > 0, "a claimed run has a number");
  invariant(token !== "", "a claimed turn has a token");
  invariant(head > 0, "a claimed run has its first entry");
  invariant(inbox.length === 0 || inbox[0]!.arrival > 0, "arrivals count from 1");
}

/** The last arrival that the run had read before the claim returned `inbox`. */
function readBefore({ arrivals }: RunRecord, [first]: readonly InboxRow[]): number {
  return first === undefined ? arrivals : first.arrival - 1;
}
