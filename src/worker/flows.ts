// Flows: nodes of flows at work here, and the commits that follow from them.
//
// FW1. A node starts when the commit that made it ready is durable, and reads what it needs then (F7).
// FW2. Whatever comes of a node is one commit; what that commit made ready and leased to this worker starts at once.
// FW3. A turn of a flow is short: it takes in what came from outside, commits, and is given back in the same commit.
// FW4. No user code runs while a transaction is open.
// FW5. What cannot go on with the code or the data there is stops its run, with the evidence; it goes on when it is resumed.

import { CancelledError, decode, RepriseError, type PayloadLimits, type Timers } from "../base/index.ts";
import {
  type Claim,
  type ClaimedItem,
  type ClaimedTurn,
  type CompleteOutcome,
  type CompleteWrite,
  type EndEntry,
  type EndStatus,
  type Entry,
  type NewChild,
  type NodeFence,
  type NodeInput,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import {
  planOf,
  refOf,
  takeIn,
  targetsOf,
  type FlowBody,
  type FlowNode,
  type NodeOutcome,
  type NodeRef,
  type Plan,
  type PlanHost,
} from "../flow/index.ts";
import type { LogLevel } from "../workflow/index.ts";
import type { Insisted } from "./claims-given-back.ts";
import type { Claimer } from "./claimer.ts";
import { NodeInputs } from "./node-inputs.ts";
import { runNode, type StartedChild } from "./node-work.ts";
import type { Pump } from "./pump.ts";
import type { Registry } from "./registry.ts";
import type { Served } from "./served.ts";
import type { Slots } from "./slots.ts";
import { brokenBy, submitStop } from "./stopping-runs.ts";
import type { TaskHost } from "./tasks.ts";
import type { TaskPool } from "./task-pool.ts";

export interface FlowsHost {
  readonly store: Store;
  readonly timers: Timers;
  readonly registry: Registry;
  readonly pump: Pump;
  readonly slots: Slots;
  readonly tasks: TaskPool;
  readonly claimer: Claimer;
  readonly served: Served;
  readonly limits: PayloadLimits | undefined;
  /** A lease this worker may give itself; undefined while it may not. */
  newClaim(): Claim | undefined;
  /** With the data of the entry that says so; refused where its input does not fit. */
  newChild(child: StartedChild, id: string, command: string): { readonly data: string; readonly child: NewChild };
  adoptChildren(asked: readonly NewChild[], started: readonly RunRecord[]): void;
  arrived(run: RunNumber): void;
  /** False while the worker drains. */
  mayStart(): boolean;
  insist(write: Insisted): void;
  /** A suspect, by its run or its item, has ended: it did not kill its worker. */
  proved(item: string): void;
  readonly onEnded: (record: RunRecord, status: EndStatus, last: EndEntry) => void;
  readonly onMoved: (record: RunRecord) => void;
  readonly onUnheld: (record: RunRecord) => void;
  log(level: LogLevel, message: string, data: Readonly<Record<string, unknown>>): void;
  report(error: unknown): void;
}

export interface FlowRun {
  readonly record: RunRecord;
  readonly body: FlowBody;
  /** The data of its first entry; read when it is needed. */
  started: string | undefined;
}

const RUNS = 10_000;
/** Before a node is tried again that could not be started. */
const PAUSE_MS = 1_000;

export class Flows {
  readonly #host: FlowsHost;
  readonly #inputs: NodeInputs;
  /** What is known of runs whose nodes came by. */
  readonly #runs = new Map<RunNumber, FlowRun>();

  readonly #reading = new Set<Promise<void>>();

  constructor(host: FlowsHost) {
    this.#host = host;
    this.#inputs = new NodeInputs(host.store, host.timers);
  }

  /** Something is being read that nodes wait for. */
  get isReading(): boolean {
    return this.#reading.size > 0;
  }
  async read(): Promise<void> {
    while (this.isReading) await Promise.allSettled([...this.#reading]);
  }

  /** What is known of runs may be of a history that the store no longer has. */
  forget(): void {
    this.#runs.clear();
    this.#inputs.forget();
  }

  #track<T>(promise: Promise<T>, then: (value: T) => void, failed: (error: unknown) => void): void {
    const tracked = promise.then(then, failed).finally(() => this.#reading.delete(tracked));
    this.#reading.add(tracked);
  }

  // ── turns (FW3) ──

  /** Takes up a run that was started with this worker's token. */
  adopt(record: RunRecord, first: Entry, token: string): void {
    const run = this.#remember(record, first.data);
    this.#takeIn(run, { record, token, inbox: [], suspicion: 0 });
  }

  take(turn: ClaimedTurn): void {
    const { record, token } = turn;
    this.#track(
      this.#withStarted(this.#remember(record, undefined)),
      (run) => this.#takeIn(run, turn),
      (error: unknown) => {
        this.#host.report(error);
        this.#host.insist({ write: "turn-back", run: record.run, token });
      },
    );
  }

  #takeIn(run: FlowRun, { record, token, inbox, suspicion }: ClaimedTurn): void {
    const read = inbox.at(-1)?.arrival ?? record.arrivals;
    const claims = new Claims(this.#host);
    let plan: Plan;
    if (suspicion > 0) this.#host.proved(String(record.run));
    try {
      plan = takeIn(run.body, { head: record.head, input: inputOf(run), inbox }, this.#planHost(run, claims));
    } catch (error) {
      claims.release();
      return this.#stop(record, { turn: token, read }, error);
    }
    this.#commit(run, { turn: token, read }, plan, claims);
  }

  // ── nodes ──

  /** Starts a claimed node; its slot has been taken. */
  start(item: ClaimedItem): void {
    const known = this.#runs.get(item.run);
    if (known !== undefined) return this.#startOf(known, item, undefined);
    this.#track(
      this.#host.store.findRun(item.runId, item.generation),
      (record) => {
        if (record === undefined) return this.#host.slots.give();
        this.#startOf(this.#remember(record, undefined), item, undefined);
      },
      (error: unknown) => this.#failStart(item, error),
    );
  }

  /** R5. Not begun, so ready again for others at once. */
  #leave({ run, item, token, attempt, line, suspicion }: ClaimedItem): void {
    this.#host.slots.give();
    if (suspicion === 0) this.#host.insist({ write: "item-back", run, item, token, attempt, ...(line && { line }) });
  }

  #failStart(item: ClaimedItem, error: unknown): void {
    this.#host.slots.give();
    this.#giveBack(item, error);
  }

  #giveBack(item: ClaimedItem, error: unknown): void {
    this.#host.report(error);
    if (item.suspicion > 0) this.#host.proved(`${item.run} ${item.item}`);
    const { run, token, line, attempt } = item;
    // Not at once: what could not be read now may be readable later.
    const availableAt = this.#host.store.now() + PAUSE_MS;
    this.#host.insist({ write: "item-back", run, item: item.item, token, attempt, availableAt, ...(line && { line }) });
  }

  /** `inputs`: what came for it, where all of that is at hand. */
  #startOf(run: FlowRun, item: ClaimedItem, inputs: readonly NodeInput[] | undefined): void {
    if (!this.#host.mayStart()) return this.#leave(item);
    let ref: NodeRef;
    try {
      ref = refOf(run.body, item.item);
    } catch (error) {
      this.#host.slots.give();
      return this.#stop(run.record, fenceOf(item), error);
    }
    const given = this.#givenTo(run, ref, item, inputs);
    if (!(given instanceof Promise)) return this.#run(run, ref, item, given);
    this.#track(
      given,
      (read) => this.#run(run, ref, item, read),
      (error: unknown) => this.#failStart(item, error),
    );
  }

  #givenTo(
    run: FlowRun,
    ref: NodeRef,
    item: ClaimedItem,
    inputs: readonly NodeInput[] | undefined,
  ): NodeGiven | Promise<NodeGiven> {
    if (ref.again)
      return this.#host.store.readJournal(item.run, item.seq - 1, 1).then(([entry]) => {
        // What follows from the input may start at once, with what stands here.
        if (entry?.type === "RunStarted") run.started = entry.data;
        return { value: valueOf(entry) };
      });
    if (ref.index !== undefined) {
      const found = this.#inputs.item(item.run, item.seq, ref.index);
      return found instanceof Promise ? found.then((value) => ({ item: value })) : { item: found.value };
    }
    if (inputs !== undefined) return { inputs };
    return this.#inputs.read(item.run, targetsOf(run.body, ref)).then((read) => ({ inputs: read }));
  }

  #run(run: FlowRun, ref: NodeRef, item: ClaimedItem, given: NodeGiven): void {
    const { tasks } = this.#host;
    tasks.startNode(item, (host: TaskHost) =>
      runNode(host, run.body, ref, item, given, {
        ended: (outcome) => this.#ended(run, ref, item, outcome),
        child: (child) => this.#startChild(run, ref, item, child),
        unreadable: (error) => {
          // Another worker may have the key, or this one after a restart.
          if (error instanceof RepriseError && error.code === "PAYLOAD_KEY_MISSING") this.#giveBack(item, error);
          else this.#stop(run.record, fenceOf(item), error);
        },
      }),
    );
  }

  #ended(run: FlowRun, ref: NodeRef, item: ClaimedItem, outcome: NodeOutcome): void {
    if (item.suspicion > 0) this.#host.proved(`${item.run} ${item.item}`);
    const claims = new Claims(this.#host);
    this.#commit(run, fenceOf(item), planOf(run.body, ref, outcome, this.#planHost(run, claims)), claims);
  }

  #startChild(run: FlowRun, ref: NodeRef, item: ClaimedItem, child: StartedChild): void {
    if (item.suspicion > 0) this.#host.proved(`${item.run} ${item.item}`);
    this.#track(
      this.#childId(run.record, item.item),
      (id) => this.#startChildAs(id, run, ref, item, child),
      (error) => this.#giveBack(item, error),
    );
  }

  /** A retried flow starts another child where the one it had was cancelled with it. */
  async #childId({ id, run }: RunRecord, item: string): Promise<string> {
    const first = `${id}/${item}`;
    for (let life = 1; ; life += 1) {
      const childId = life === 1 ? first : `${first}~${life}`;
      const taken = await this.#host.store.findRun(childId);
      if (taken?.parent !== run || taken.parentCommand !== item) return childId;
    }
  }

  #startChildAs(id: string, run: FlowRun, ref: NodeRef, item: ClaimedItem, child: StartedChild): void {
    let started: { readonly data: string; readonly child: NewChild };
    try {
      started = this.#host.newChild(child, id, item.item);
    } catch (error) {
      // The deployment is wrong, not the run.
      if (error instanceof RepriseError && error.code === "UNKNOWN_DEFINITION")
        return this.#stop(run.record, fenceOf(item), error);
      return this.#ended(run, ref, item, { outcome: "failure", error, attempt: item.attempt });
    }
    const plan: Plan = {
      entries: [{ type: "ChildWorkflowInitiated", command: item.item, data: started.data }],
      arrivals: [],
      advances: [],
      children: [started.child],
      messages: [],
      then: "go on",
    };
    this.#commit(run, fenceOf(item), plan, new Claims(this.#host));
  }

  /** FW5 */
  #stop(record: RunRecord, fence: NodeFence, error: unknown): void {
    const isItem = "item" in fence;
    const { message, evidence } = brokenBy(error, isItem ? fence.item : undefined);
    const held = isItem ? fence : { token: fence.turn };
    submitStop(this.#host, record, { write: "stop", run: record.run, ...held, status: "blocked", evidence }, message);
  }

  // ── commits (FW2) ──

  #planHost({ record }: FlowRun, claims: Claims): PlanHost {
    return { record, limits: this.#host.limits, claim: (...asked) => claims.for(...asked) };
  }

  #commit(run: FlowRun, fence: NodeFence, plan: Plan, claims: Claims): void {
    const write: CompleteWrite = { write: "complete", run: run.record.run, fence, ...plan };
    this.#host.pump.submit(write).then(
      (outcome) => this.#committed(run, write, outcome, claims),
      (error: unknown) => {
        claims.release();
        this.#host.report(error);
      },
    );
  }

  #committed(run: FlowRun, write: CompleteWrite, outcome: CompleteOutcome, claims: Claims): void {
    const { record } = run;
    const { claimer } = this.#host;
    if (outcome.status !== "committed") {
      claims.release();
      if (outcome.status === "stale") return;
      this.#host.log("error", `Flow ${run.body.name}: ${outcome.evidence.code} at ${outcome.evidence.node}`, {
        run: record.id,
        status: "blocked",
      });
      return this.#host.onUnheld(record);
    }
    this.#host.onMoved(record);
    this.#keepItems(record.run, write, outcome.seq);
    for (const queued of outcome.queued) {
      if (queued.token === undefined) {
        claimer.want("items");
        continue;
      }
      claims.use(queued.token);
      this.#startLocal(run, write, queued.item, queued.token, queued.seq);
    }
    claims.release();
    this.#host.adoptChildren(write.children, outcome.children);
    for (const told of outcome.told) this.#host.arrived(told);
    for (const { to } of write.messages) this.#host.arrived(to);
    if (write.then !== "go on") return this.#onEnded(run, write, write.then, outcome);
    if (outcome.more) claimer.want("turns");
    if ("item" in write.fence) claimer.freed();
  }

  #onEnded(
    run: FlowRun,
    { entries }: CompleteWrite,
    status: EndStatus,
    { seq, at }: CompleteOutcome & { status: "committed" },
  ): void {
    const { record } = run;
    this.#runs.delete(record.run);
    this.#host.tasks.abandon(record.run, () => new CancelledError("The run has ended."));
    this.#host.claimer.freed();
    const last = entries.at(-1)!;
    this.#host.onEnded(record, status, { ...last, seq: seq + entries.length - 1, at });
  }

  #keepItems(run: RunNumber, { spread, entries }: CompleteWrite, seq: number): void {
    if (spread === undefined) return;
    for (const [index, { type, data }] of entries.entries())
      if (type === "ItemsSpread") this.#inputs.keep(run, seq + index, data);
  }

  /** What this commit has said of a node need not be read again; what came before it must be. */
  #startLocal(run: FlowRun, write: CompleteWrite, item: string, token: string, seq: number): void {
    const { id: runId, generation } = run.record;
    const came = write.arrivals.filter(({ target }) => target === item);
    const claimed: ClaimedItem = {
      run: run.record.run,
      runId,
      generation,
      item,
      kind: "node",
      name: "",
      token,
      attempt: 0,
      failures: undefined,
      seq,
      data: "",
      suspicion: 0,
    };
    const isWhole = came.length > 0 && came[0]?.required === came.length && came.every(({ index }) => index < 0);
    const needsLists = isWhole && targetsOf(run.body, refOf(run.body, item)).length > 1;
    const inputs = !isWhole || needsLists ? undefined : inputsOf(run, write, came);
    this.#startOf(run, claimed, inputs);
  }

  // ── runs ──

  #remember(record: RunRecord, started: string | undefined): FlowRun {
    const known = this.#runs.get(record.run);
    const run: FlowRun = {
      record,
      body: known?.body ?? this.#host.registry.getFlow(record.definition, record.version),
      started: started ?? known?.started,
    };
    this.#runs.delete(record.run);
    this.#runs.set(record.run, run);
    const [oldest] = this.#runs.keys();
    if (this.#runs.size > RUNS && oldest !== undefined) this.#runs.delete(oldest);
    return run;
  }

  async #withStarted(run: FlowRun): Promise<FlowRun> {
    if (run.started === undefined) {
      const [first] = await this.#host.store.readJournal(run.record.run, 0, 1);
      run.started = first?.data;
    }
    return run;
  }
}

/** What a node has got: an item of a spread, or what came along its edges. */
export type NodeGiven =
  | { readonly item: unknown }
  | { readonly inputs: readonly NodeInput[] }
  /** What it came to before. */
  | { readonly value: unknown };

/** Leases that a plan may use. Nodes that run user code which may wait take their slot with the lease. */
class Claims {
  readonly #host: FlowsHost;
  readonly #slots = new Set<string>();

  constructor(host: FlowsHost) {
    this.#host = host;
  }

  for({ work }: FlowNode, route: string, label: string | undefined): Claim | undefined {
    const { slots, claimer, served } = this.#host;
    const takesSlot = work.kind === "action" || work.kind === "spread" || work.kind === "call";
    // What is only derived in memory is done where its last input came from, whatever queue that worker is for.
    if (takesSlot ? !served.hasItem(route) : !served.hasLabel(label)) return undefined;
    // Work that already waits goes first.
    if (takesSlot && (slots.free <= 0 || claimer.itemsWait)) {
      claimer.noteItems();
      return undefined;
    }
    const claim = this.#host.newClaim();
    if (claim === undefined || !takesSlot) return claim;
    slots.take();
    this.#slots.add(claim.token);
    return claim;
  }

  /** The lease stands, and its node has a slot. */
  use(token: string): void {
    if (!this.#slots.delete(token)) this.#host.slots.take();
  }

  release(): void {
    for (const _ of this.#slots) this.#host.slots.give();
    this.#slots.clear();
  }
}

function fenceOf({ item, token, line }: ClaimedItem): NodeFence {
  return { item, token, ...(line && { line }) };
}

/** Of the run's first entry, or of a node's own. */
function valueOf(entry: Entry | undefined): unknown {
  const data = decode(entry?.data ?? "{}") as { input?: unknown; result?: unknown };
  return entry?.type === "RunStarted" ? data.input : data.result;
}

function inputOf({ started }: FlowRun): unknown {
  return (decode(started ?? "{}") as { input?: unknown }).input;
}

function inputsOf(run: FlowRun, { entries }: CompleteWrite, came: CompleteWrite["arrivals"]): readonly NodeInput[] {
  return came.map(({ target, edge, index, kind, cause }) => ({
    target,
    edge,
    index,
    kind,
    seq: cause ?? -1,
    data: cause === undefined ? (run.started ?? "{}") : (entries[cause]?.data ?? "{}"),
  }));
}
