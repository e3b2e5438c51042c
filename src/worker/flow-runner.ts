// FlowRunner: runs turns and nodes of flows, and commits their outcomes.
//
// flow-runner.F1. A node starts after the commit that made it ready is durable, and reads its inputs then (rules.F7).
// flow-runner.F2. The outcome of a node is one commit. Nodes that this commit made ready and leased to this worker start at once.
// flow-runner.F3. A turn of a flow applies the messages in its inbox, commits, and releases the turn in the same commit.
// flow-runner.F4. No user code runs while a transaction is open.
// flow-runner.F5. A flow that cannot continue with the current code or data is stopped, with evidence. `resume` continues it.

import { CancelledError, RepriseError, shellWord } from "../base/index.ts";
import {
  emit,
  emitEnded,
  isObserved,
  lacksRuntime,
  readNodeRoute,
  type ClaimedItem,
  type ClaimedTurn,
  type CompleteOutcome,
  type CompleteWrite,
  type EndedRunStatus,
  type Entry,
  type NewChild,
  type NodeFence,
  type NodeInput,
  type QueueSlot,
  type RunNumber,
  type RunRecord,
} from "../kernel/index.ts";
import {
  planCompletion,
  planPortion,
  requireRef,
  routeOf,
  planTurn,
  inputTargets,
  type FlowBody,
  type NodeOutcome,
  type NodeRef,
  type CompletionPlan,
  type PlanHost,
} from "../flow/index.ts";
import { effectNotRecorded, FlowAnswers } from "./flow-answers.ts";
import { newFlowChild } from "./flow-child.ts";
import { endSpan, modelsOf, nodeSpan, readFlowStart, traceOf, type FlowStart } from "./flow-start.ts";
import { fenceOf, inputOf, inputsOf, valueOf, type NodeArguments } from "./node-arguments.ts";
import { NodeInputs } from "./node-inputs.ts";
import { claimedNode, PlannedClaims } from "./planned-claims.ts";
import { runFlowNode, type StartedChild } from "./run-flow-node.ts";
import type { Parts } from "./worker-parts.ts";
import { blockedEvidence, submitStop } from "./run-stopper.ts";

export interface FlowRun extends FlowStart {
  readonly record: RunRecord;
  readonly body: FlowBody;
  /** The data of its first entry, once it was read. */
  started: string | undefined;
  /** runtimes.M2. What commits add to the row, until one is durable. */
  runtime: string | undefined;
  /** False: every node is executed. Undefined: not known yet. */
  answers?: FlowAnswers | false;
}

const RUN_CACHE_SIZE = 10_000;
/** Delay before a node that could not be started is claimed again. */
const RESTART_NODE_MS = 1_000;

export class FlowRunner {
  readonly #parts: Parts;
  readonly #inputs: NodeInputs;
  /** Runs whose turns or nodes this worker has run, least recently used first. */
  readonly #runs = new Map<RunNumber, FlowRun>();

  readonly #reading = new Set<Promise<void>>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#inputs = new NodeInputs(parts.store, parts.timers);
  }

  /** Nodes or turns wait for a read. */
  get isReading(): boolean {
    return this.#reading.size > 0;
  }
  async allRead(): Promise<void> {
    while (this.isReading) await Promise.allSettled([...this.#reading]);
  }

  /** The cached runs may belong to a history that the store no longer has. */
  clear(): void {
    this.#runs.clear();
    this.#inputs.clear();
  }

  #track<T>(promise: Promise<T>, then: (value: T) => void, failed: (error: unknown) => void): void {
    const tracked = promise.then(then, failed).finally(() => this.#reading.delete(tracked));
    this.#reading.add(tracked);
  }

  // ── turns (flow-runner.F3) ──

  /** Starts a new run that its first commit leased to this worker. */
  adopt(record: RunRecord, first: Entry, token: string): void {
    const run = this.#remember(record, first.data);
    this.#commitTurn(run, { record, token, inbox: [], suspicion: 0 });
  }

  startTurn(turn: ClaimedTurn): void {
    const { record, token } = turn;
    this.#track(
      this.#withStarted(this.#remember(record, undefined)),
      (run) => this.#commitTurn(run, turn),
      (error: unknown) => {
        this.#parts.log.report(error);
        this.#parts.persistentWrites.returnTurn(record.run, token, error);
      },
    );
  }

  #commitTurn(run: FlowRun, { record, token, inbox, suspicion }: ClaimedTurn): void {
    const isNew = record.head === run.firstHead;
    if (isNew && isObserved()) emit({ event: "run.started", run: record.id, definition: record.definition });
    const read = inbox.at(-1)?.arrival ?? record.arrivals;
    const claims = new PlannedClaims(this.#parts);
    let plan: CompletionPlan;
    if (suspicion > 0) this.#parts.quarantine.clear(String(record.run));
    try {
      plan = planTurn(run.body, { isNew, input: inputOf(run), inbox }, this.#planHost(run, claims));
    } catch (error) {
      claims.release();
      return this.#stop(record, { turn: token, read }, error);
    }
    this.#commit(run, { turn: token, read }, plan, claims);
  }

  // ── nodes ──

  /** Starts a claimed node; the caller has acquired its slot. */
  startNode(item: ClaimedItem): void {
    const cached = this.#runs.get(item.run);
    const known = cached?.record.version === readNodeRoute(item.name)?.version ? cached : undefined;
    if (known?.started !== undefined) return this.#startKnown(known, item, undefined);
    const { store } = this.#parts;
    const found = known === undefined ? store.findRun(item.runId, item.generation) : Promise.resolve(known.record);
    this.#track(
      found.then((record) => record && this.#withStarted(this.#remember(record, undefined))),
      (run) => (run === undefined ? this.#parts.slots.release() : this.#startKnown(run, item, undefined)),
      (error: unknown) => this.#failStart(item, error),
    );
  }

  /** worker.R2. Other workers can claim the node at once. */
  #releaseUnstarted({ run, item, token, attempt, execution, slot, suspicion }: ClaimedItem): void {
    this.#parts.slots.release();
    const unused = { attempt, executions: execution - 1, ...(slot && { slot }) };
    if (suspicion === 0) this.#parts.persistentWrites.submit({ write: "return-item", run, item, token, ...unused });
  }

  #failStart(item: ClaimedItem, error: unknown): void {
    this.#parts.slots.release();
    this.#releaseLater(item, error);
  }

  #releaseLater(item: ClaimedItem, error: unknown): void {
    this.#parts.log.report(error);
    if (item.suspicion > 0) this.#parts.quarantine.clear(`${item.run} ${item.item}`);
    const { run, token, slot, attempt } = item;
    // Later: the data that could not be read may become readable.
    const availableAt = this.#parts.store.now() + RESTART_NODE_MS;
    this.#parts.persistentWrites.submit({
      write: "return-item",
      run,
      item: item.item,
      token,
      attempt,
      availableAt,
      ...(slot && { slot }),
    });
  }

  /** `inputs`: the node's inputs, if all of them are in memory. */
  #startKnown(run: FlowRun, item: ClaimedItem, inputs: readonly NodeInput[] | undefined): void {
    if (this.#parts.drain.isDraining || this.#parts.isStopped) return this.#releaseUnstarted(item);
    let ref: NodeRef;
    try {
      ref = requireRef(run.body, item.item);
    } catch (error) {
      this.#parts.slots.release();
      return this.#stop(run.record, fenceOf(item), error);
    }
    if (ref.isPortion) return this.#startPortion(run, ref, item);
    const given = this.#argumentsOf(run, ref, item, inputs);
    run.answers ??= FlowAnswers.of(this.#parts.store, run.body, run.started) ?? false;
    if (run.answers !== false) return this.#answer(run.answers, run, ref, item, given);
    if (!(given instanceof Promise)) return this.#runNode(run, ref, item, given);
    this.#track(
      given,
      (read) => this.#runNode(run, ref, item, read),
      (error: unknown) => this.#failStart(item, error),
    );
  }

  #argumentsOf(
    run: FlowRun,
    ref: NodeRef,
    item: ClaimedItem,
    inputs: readonly NodeInput[] | undefined,
  ): NodeArguments | Promise<NodeArguments> {
    if (ref.rederives)
      return this.#parts.store.readJournal(item.run, item.seq - 1, 1).then(([entry]) => {
        // Nodes that follow from the input start with this, without another read.
        if (entry?.type === "RunStarted") run.started = entry.data;
        return { value: valueOf(entry) };
      });
    if (ref.index !== undefined) {
      const found = this.#inputs.item(item.run, item.seq, ref.index);
      return found instanceof Promise ? found.then((value) => ({ item: value })) : { item: found.value };
    }
    if (inputs !== undefined) return { inputs };
    return this.#inputs.read(item.run, inputTargets(run.body, ref)).then((read) => ({ inputs: read }));
  }

  /** fork.F6 */
  #answer(
    answers: FlowAnswers,
    run: FlowRun,
    ref: NodeRef,
    item: ClaimedItem,
    given: NodeArguments | Promise<NodeArguments>,
  ): void {
    this.#track(
      Promise.resolve(given).then(async (read) => ({ read, answer: await answers.find(ref, read) })),
      ({ read, answer }) => {
        if (answer === "execute") return this.#runNode(run, ref, item, read);
        if (answer === "unrecorded") {
          this.#parts.slots.release();
          return this.#stop(run.record, fenceOf(item), effectNotRecorded(item.item));
        }
        this.#parts.tasks.startNode(item, (running) => {
          running.onSettled();
          this.#ended(run, ref, item, answer);
          return undefined;
        });
      },
      (error: unknown) => this.#failStart(item, error),
    );
  }

  /** Queues the next items of a spread with limits per key. */
  #startPortion(run: FlowRun, ref: NodeRef, item: ClaimedItem): void {
    const claims = new PlannedClaims(this.#parts);
    this.#track(
      this.#inputs.portionKeys(item.run, item.seq),
      (keys) =>
        this.#parts.tasks.startNode(item, (running) => {
          running.onSettled();
          this.#commit(run, fenceOf(item), planPortion(run.body, ref, keys, this.#planHost(run, claims)), claims);
          return undefined;
        }),
      (error: unknown) => this.#failStart(item, error),
    );
  }

  /** keys.K1 */
  #moveToQueue(
    { body }: FlowRun,
    ref: NodeRef,
    { run, item, token, attempt, execution, suspicion }: ClaimedItem,
    slot: QueueSlot,
  ): void {
    if (suspicion > 0) this.#parts.quarantine.clear(`${run} ${item}`);
    const into = { name: routeOf(body, ref.head.region.head), slot };
    this.#parts.persistentWrites.submit({
      write: "return-item",
      run,
      item,
      token,
      attempt,
      executions: execution - 1,
      into,
    });
  }

  #runNode(run: FlowRun, ref: NodeRef, item: ClaimedItem, given: NodeArguments): void {
    this.#parts.tasks.startNode(item, (running) =>
      runFlowNode(running, run.body, ref, given, {
        span: () => nodeSpan(this.#parts, run, ref.head.region.head.id, item),
        ended: (outcome) => this.#ended(run, ref, item, outcome),
        child: (child) => this.#startChild(run, ref, item, child),
        queued: (slot) => this.#moveToQueue(run, ref, item, slot),
        unreadable: (error) => {
          // Another worker, or a restarted one, may have the key.
          if (error instanceof RepriseError && error.code === "PAYLOAD_KEY_MISSING") this.#releaseLater(item, error);
          else this.#stop(run.record, fenceOf(item), error);
        },
      }),
    );
  }

  #ended(run: FlowRun, ref: NodeRef, item: ClaimedItem, outcome: NodeOutcome): void {
    if (item.suspicion > 0) this.#parts.quarantine.clear(`${item.run} ${item.item}`);
    const claims = new PlannedClaims(this.#parts);
    this.#commit(run, fenceOf(item), planCompletion(run.body, ref, outcome, this.#planHost(run, claims)), claims);
  }

  #startChild(run: FlowRun, ref: NodeRef, item: ClaimedItem, child: StartedChild): void {
    if (item.suspicion > 0) this.#parts.quarantine.clear(`${item.run} ${item.item}`);
    this.#track(
      this.#childId(run.record, item.item),
      (id) => this.#startChildAs(id, run, ref, item, child),
      (error) => this.#releaseLater(item, error),
    );
  }

  /** A retried flow needs a new child id where its earlier child was canceled. */
  async #childId({ id, run }: RunRecord, item: string): Promise<string> {
    const first = `${id}/${item}`;
    for (let life = 1; ; life += 1) {
      const childId = life === 1 ? first : `${first}~${life}`;
      const taken = await this.#parts.store.findRun(childId);
      if (taken?.parent !== run || taken.parentCommand !== item) return childId;
    }
  }

  #startChildAs(id: string, run: FlowRun, ref: NodeRef, item: ClaimedItem, child: StartedChild): void {
    let started: { readonly data: string; readonly child: NewChild };
    try {
      started = newFlowChild(this.#parts, child, id, item.item, traceOf(run), modelsOf(run));
    } catch (error) {
      // The deployment is wrong, so the run is stopped instead of failed.
      if (error instanceof RepriseError && error.code === "UNKNOWN_DEFINITION")
        return this.#stop(run.record, fenceOf(item), error);
      return this.#ended(run, ref, item, { outcome: "failure", error, attempt: item.attempt });
    }
    const plan: CompletionPlan = {
      entries: [{ type: "ChildWorkflowInitiated", command: item.item, data: started.data }],
      arrivals: [],
      advances: [],
      children: [started.child],
      messages: [],
      then: "continue",
    };
    this.#commit(run, fenceOf(item), plan, new PlannedClaims(this.#parts));
  }

  /** flow-runner.F5 */
  #stop(record: RunRecord, fence: NodeFence, error: unknown): void {
    const isItem = "item" in fence;
    const { message, evidence } = blockedEvidence(error, isItem ? fence.item : undefined);
    const held = isItem ? fence : { token: fence.turn };
    submitStop(this.#parts, record, { write: "stop", run: record.run, ...held, status: "blocked", evidence }, message);
  }

  // ── commits (flow-runner.F2) ──

  #planHost({ record }: FlowRun, claims: PlannedClaims): PlanHost {
    return { record, limits: this.#parts.limits, claim: (...asked) => claims.for(...asked) };
  }

  #commit(run: FlowRun, fence: NodeFence, plan: CompletionPlan, claims: PlannedClaims): void {
    const { record, runtime } = run;
    const span = endSpan(this.#parts, run, plan.then);
    const { run: number, budget } = record;
    const write: CompleteWrite = { write: "complete", run: number, budget, fence, ...plan, runtime, span };
    this.#parts.pump.submit(write).then(
      (outcome) => this.#committed(run, write, outcome, claims),
      (error: unknown) => {
        claims.release();
        this.#parts.log.report(error);
      },
    );
  }

  #committed(run: FlowRun, write: CompleteWrite, outcome: CompleteOutcome, claims: PlannedClaims): void {
    const { record } = run;
    const { claimer, runs, starts, failures, options } = this.#parts;
    if (outcome.status !== "committed") {
      claims.release();
      if (outcome.status === "stale") return void this.#runs.delete(record.run);
      const { code, node } = outcome.evidence;
      const message = `Flow ${run.body.name} is blocked: ${code} at node ${node}. Run \`reprise show ${shellWord(record.id)}\` for the evidence.`;
      options.log("error", message, { run: record.id, status: "blocked" });
      return options.onUnheld(record);
    }
    run.runtime = undefined;
    failures.onNodes(record, write);
    options.onCommitted(record);
    this.#cacheItems(record.run, write, outcome.seq);
    for (const queued of outcome.queued) {
      if (queued.token === undefined) {
        claimer.request("items");
        continue;
      }
      claims.use(queued.token);
      this.#startLocal(run, write, queued.item, queued.token, queued.seq);
    }
    claims.release();
    starts.adoptChildren(write.children, outcome.children);
    for (const notified of outcome.notified) runs.arrived(notified);
    for (const { to } of write.messages) runs.arrived(to);
    if (write.then !== "continue") return this.#onEnded(run, write, write.then, outcome);
    if (outcome.more) claimer.request("turns");
    if ("item" in write.fence) claimer.onQueueSlotFreed();
  }

  #onEnded(
    run: FlowRun,
    { entries }: CompleteWrite,
    status: EndedRunStatus,
    { seq, at }: CompleteOutcome & { status: "committed" },
  ): void {
    const { record } = run;
    this.#runs.delete(record.run);
    if (isObserved()) emitEnded(record, status, this.#parts.store.now());
    this.#parts.tasks.abandon(record.run, () => new CancelledError("The run has ended."));
    this.#parts.claimer.onQueueSlotFreed();
    const last = entries.at(-1)!;
    this.#parts.events.ended(record, status, { ...last, seq: seq + entries.length - 1, at });
  }

  #cacheItems(run: RunNumber, { spread, entries }: CompleteWrite, seq: number): void {
    if (spread === undefined) return;
    for (const [index, { type, data }] of entries.entries())
      if (type === "ItemsSpread") this.#inputs.cache(run, seq + index, data);
  }

  /** Inputs that are all in this commit are not read again. */
  #startLocal(run: FlowRun, write: CompleteWrite, item: string, token: string, seq: number): void {
    const came = write.arrivals.filter(({ target }) => target === item);
    const claimed = claimedNode(run.record, item, token, seq);
    const isWhole = came.length > 0 && came[0]?.required === came.length && came.every(({ index }) => index < 0);
    const needsLists = isWhole && inputTargets(run.body, requireRef(run.body, item)).length > 1;
    const inputs = !isWhole || needsLists ? undefined : inputsOf(run, write, came);
    this.#startKnown(run, claimed, inputs);
  }

  // ── runs ──

  #remember(record: RunRecord, started: string | undefined): FlowRun {
    const cached = this.#runs.get(record.run);
    const known = cached?.record.version === record.version ? cached : undefined;
    const run: FlowRun = {
      record,
      body: known?.body ?? this.#parts.registry.getFlow(record.definition, record.version),
      started: started ?? known?.started,
      runtime: lacksRuntime(record.runtime, this.#parts.options.runtime) ? this.#parts.options.runtime : undefined,
      firstHead: known?.firstHead ?? 1,
    };
    this.#runs.delete(record.run);
    this.#runs.set(record.run, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > RUN_CACHE_SIZE && oldest !== undefined) this.#runs.delete(oldest);
    return run;
  }

  async #withStarted(run: FlowRun): Promise<FlowRun> {
    if (run.started === undefined) Object.assign(run, await readFlowStart(this.#parts.store, run.record.run));
    return run;
  }
}
