// NodesOfRun: the nodes of a graph at work in a run that may be given back meanwhile (H5).
//
// While all its nodes wait for something durable the run is given back. Code of a node may go on all the same: what it
// then does waits here until the run is held again, and the turn is asked for.

import type { MessageWrite, RunRecord } from "../kernel/index.ts";
import { entryData, type LimitWaitAsk, type OperationAsk, type StopNodesAsk } from "../workflow/index.ts";
import { NONE } from "./batch.ts";
import type { Draft } from "./draft.ts";
import type { HotRun } from "./hot-run.ts";
import type { HotRunHost } from "./hot-run-host.ts";
import type { OperationsOfRun } from "./operations-of-run.ts";
import { sendMessages } from "./take-ask.ts";

/** How long nodes may go on when another of their step has failed for good. */
const GRACE_MS = 5_000;

/** K2. How long code may take to ask for what it got first, before it is taken for changed. It may wait for something of its own. */
const UNASKED_MS = 1_000;

const nothing = (): void => {};

export class NodesOfRun {
  readonly #run: HotRun;
  readonly #host: HotRunHost;
  readonly #operations: OperationsOfRun;
  #postponed: (() => void)[] = [];
  #limit: LimitWaitAsk["limit"];
  #cancelWait: (() => void) | undefined;
  #cancelHeld: (() => void) | undefined;
  /** Some have begun since the loop last looked; kept by the loop, too. */
  began = false;

  /** `operations`: those of the run that have not ended, nodes among them. */
  constructor(run: HotRun, host: HotRunHost, operations: OperationsOfRun) {
    this.#run = run;
    this.#host = host;
    this.#operations = operations;
  }

  postpone(work: () => void): void {
    this.#postponed.push(work);
    if (this.#postponed.length === 1) this.#host.wantTurn(this.#run);
  }

  /** The run is held again. */
  held(): void {
    const postponed = this.#postponed;
    this.#postponed = [];
    for (const work of postponed) work();
  }

  /** The code of a node has asked for something by itself. */
  asked(): void {
    if (!this.#run.postpone(nothing)) this.#host.markRunning(this.#run);
  }

  /** A node's function has ended for good. */
  ended(draft: Draft, { command, index }: OperationAsk, isCompleted: boolean): void {
    const { execution } = this.#run;
    const sent = execution.nodes?.end(command) ?? NONE;
    if (isCompleted && execution.isOpen(command)) sendMessages(draft, index, sent);
  }

  /** K1. Gives the code that is run again what comes next for it, before anything new; true when there was something. */
  giveNext(): boolean {
    const { waits } = this.#run.execution;
    if (this.#run.isPaused) return false;
    const isGiven = waits.giveNext();
    if (isGiven || !waits.isHeld) {
      this.#cancelHeld?.();
      this.#cancelHeld = undefined;
    } else
      this.#cancelHeld ??= this.#host.timers.set(UNASKED_MS, () => {
        this.#cancelHeld = undefined;
        waits.skipUnasked();
        this.asked();
      });
    return isGiven;
  }

  waits(command: string, isWaiting: boolean): void {
    const attempt = this.#operations.attemptOf(command);
    if (isWaiting) attempt?.suspend();
    else attempt?.goOn();
  }

  take(ask: LimitWaitAsk | StopNodesAsk): void {
    if (ask.ask === "stop-nodes") this.#stop(ask);
    else this.#limitWait(ask);
  }

  /** G12. Those at work have a while to finish; the others end here. */
  #stop({ nodes, error }: StopNodesAsk): void {
    for (const { command, name, index } of nodes) {
      const attempt = this.#operations.attemptOf(command);
      if (attempt !== undefined) attempt.stop(error, GRACE_MS);
      else
        this.#run.endIdleNode(
          command,
          entryData.operationFailedData({ index, name, input: undefined, attempt: 0 }, error),
        );
    }
  }

  // ── backpressure (G5) ──

  #limitWait({ limit }: LimitWaitAsk): void {
    this.#limit = limit;
    this.waitAnew();
  }

  /** Also when the run was resumed while it was still in memory. */
  waitAnew(): void {
    this.#cancelWait?.();
    const limit = this.#limit;
    if (limit === undefined) return;
    const pause = (): void => this.#host.pauseItself(this.#run, limit.evidence());
    this.#cancelWait = this.#host.timers.set(limit.ms, pause, { ref: false });
  }

  /** The run is out of memory. */
  letGo(): void {
    this.#cancelWait?.();
    this.#cancelHeld?.();
    this.#limit = undefined;
  }
}

/** Makes the turn due: a message nobody waits for. */
export function turnWanted({ id }: RunRecord): MessageWrite {
  return { write: "message", to: id, arrival: { type: "TimerFired", target: "", data: "{}" }, once: false };
}
