// GraphNodes: the nodes of a graph run that this worker runs.
//
// While all nodes wait for durable commands, the worker releases the run's turn (hot-run.H5). If the code of a node continues
// then, its actions are deferred and the worker requests the turn again.

import { entryData, type LimitWaitRequest, type OperationRequest, type StopNodesRequest } from "../workflow/index.ts";
import { EMPTY } from "./pending-commit.ts";
import type { JournalWriter } from "./journal-writer.ts";
import type { HotRun, HotRunParts } from "./hot-run.ts";
import type { OpenOperations } from "./open-operations.ts";
import { addMessages } from "./handle-command.ts";

/** How long the other nodes of a step may run after one has failed. */
const STOP_GRACE_MS = 5_000;

/** recorded-answers.K2. How long replayed code may take to request a recorded answer before it counts as changed. */
const UNREQUESTED_MS = 1_000;

const nothing = (): void => {};

export class GraphNodes {
  readonly #run: HotRun;
  readonly #parts: HotRunParts;
  readonly #operations: OpenOperations;
  #deferred: (() => void)[] = [];
  #limit: LimitWaitRequest["limit"];
  #cancelWait: (() => void) | undefined;
  #cancelHeld: (() => void) | undefined;
  /** Nodes have started since the last tick of the pump, which resets this. */
  hasStarted = false;

  constructor(run: HotRun, parts: HotRunParts, operations: OpenOperations) {
    this.#run = run;
    this.#parts = parts;
    this.#operations = operations;
  }

  defer(work: () => void): void {
    this.#deferred.push(work);
    if (this.#deferred.length === 1) this.#requestTurn();
  }

  /** The run was released, and now has something to commit: a message that settles nothing makes its turn due. */
  #requestTurn(): void {
    const { pump, runs, log } = this.#parts;
    const { id, run } = this.#run.record;
    const arrival = { type: "TimerFired", target: "", data: "{}" } as const;
    pump.submit({ write: "message", to: id, arrival, once: false }).then(
      () => runs.arrived(run),
      (error: unknown) => log.report(error),
    );
  }

  /** The run is held again. */
  onHeld(): void {
    const postponed = this.#deferred;
    this.#deferred = [];
    for (const work of postponed) work();
  }

  /** The code of a node has issued a command outside a delivery. */
  onCommand(): void {
    if (!this.#run.defer(nothing)) this.#parts.pump.markRunning(this.#run);
  }

  /** A node's function has ended and will not be retried. */
  onEnded(journal: JournalWriter, { command, index }: OperationRequest, isCompleted: boolean): void {
    const { execution } = this.#run;
    const sent = execution.nodes?.end(command) ?? EMPTY;
    if (isCompleted && execution.isOpen(command)) addMessages(journal, index, sent);
  }

  /** recorded-answers.K1. Delivers the next recorded answer to replayed code, before new completions; true when there was one. */
  deliverNext(): boolean {
    const { waits } = this.#run.execution;
    if (this.#run.isPaused) return false;
    const isGiven = waits.deliverNext();
    if (isGiven || !waits.isBlocked) {
      this.#cancelHeld?.();
      this.#cancelHeld = undefined;
    } else
      this.#cancelHeld ??= this.#parts.timers.set(UNREQUESTED_MS, () => {
        this.#cancelHeld = undefined;
        waits.skipUnrequested();
        this.onCommand();
      });
    return isGiven;
  }

  setWaiting(command: string, isWaiting: boolean): void {
    const attempt = this.#operations.attemptOf(command);
    if (isWaiting) attempt?.suspend();
    else attempt?.resume();
  }

  handleCommand(request: LimitWaitRequest | StopNodesRequest): void {
    if (request.kind === "stop-nodes") this.#stop(request);
    else this.#limitWait(request);
  }

  /** rules.G12. Running nodes get a grace period; the others end now. */
  #stop({ nodes, error }: StopNodesRequest): void {
    for (const { command, name, index } of nodes) {
      const attempt = this.#operations.attemptOf(command);
      if (attempt !== undefined) attempt.stop(error, STOP_GRACE_MS);
      else
        this.#run.endIdleNode(
          command,
          entryData.operationFailedData({ index, name, input: undefined, attempt: 0 }, error),
        );
    }
  }

  // ── backpressure (rules.G5) ──

  #limitWait({ limit }: LimitWaitRequest): void {
    this.#limit = limit;
    this.restartWaitLimit();
  }

  /** Also called when a run that is still in memory is resumed. */
  restartWaitLimit(): void {
    this.#cancelWait?.();
    const limit = this.#limit;
    if (limit === undefined) return;
    const pause = (): void => this.#parts.control.pauseFromCode(this.#run, limit.evidence());
    this.#cancelWait = this.#parts.timers.set(limit.ms, pause, { ref: false });
  }

  /** The run leaves memory. */
  discard(): void {
    this.#cancelWait?.();
    this.#cancelHeld?.();
    this.#limit = undefined;
  }
}
