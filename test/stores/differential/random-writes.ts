// RandomWrites: random lists of writes of every kind, based on earlier outcomes of the store. Many are rejected, some repeat
// earlier ones.

import {
  chainAfter,
  markOf,
  type Arrival,
  type Claim,
  type ClaimedItem,
  type ClaimedMessage,
  type ClaimedTurn,
  type Entry,
  type EntryType,
  type QueueSlot,
  type NewChunk,
  type NewItem,
  type NewRun,
  type Outcome,
  type QueueLimits,
  type ScheduleRecord,
  type SpreadPortion,
  type StartWrite,
  type Store,
  type TurnWrite,
  type Write,
} from "../../../src/kernel/index.ts";
import {
  arrival,
  completed,
  completeWrite,
  done,
  endParts,
  FLOW,
  MORE,
  NODE,
  ROUTE,
  RUN_COMPLETED,
  RUN_FAILED,
  spreadOf,
} from "../../../src/testing/store-cases/flow-actions.ts";
import { newToken, newTokens } from "../../../src/testing/store-cases/store-actions.ts";

type Draw = (max: number) => number;

/** A run as its holder knows it. */
interface Holding {
  readonly run: number;
  readonly id: string;
  readonly kind: string;
  token: string;
  head: number;
  chain: string;
  read: number;
  arrivals: number;
  steps: number;
  commands: number;
}

interface Planned {
  readonly write: Write;
  readonly then?: (outcome: Outcome) => void;
}

const IDS = 14;
const QUEUES = ["mail", "print"];
const STREAMS = ["log", "out"];
const STEPS = ["Operation(0)", "Node(1.0)", "Node(1.0)#0/Operation(0)", "Node(1.0)#1/Operation(0)"];
const DESTINATIONS = ["erp", "post"];

export class RandomWrites {
  readonly #store: Store;
  readonly #draw: Draw;
  readonly #workers: number[] = [];
  readonly #held = new Map<number, Holding>();
  #items: ClaimedItem[] = [];
  #messages: ClaimedMessage[] = [];
  #schedules: ScheduleRecord[] = [];
  readonly #failed = new Map<number, { readonly head: number }>();
  readonly #checkpoints: { readonly run: number; readonly step: number; readonly key: string }[] = [];
  readonly #ids: string[] = [];
  #count = 0;

  constructor(store: Store, draw: Draw) {
    this.#store = store;
    this.#draw = draw;
  }

  async step(): Promise<void> {
    const draw = this.#draw;
    if (this.#workers.length === 0 || draw(60) === 0)
      this.#workers.push(await this.#store.registerWorker(`w${this.#count++}`, 5_000 + draw(60_000)));
    if (draw(40) === 0) await this.#store.releaseWorker(this.#pick(this.#workers)!);
    if (draw(25) === 0) await this.#store.reap(this.#pick(this.#workers)!);
    const list = Array.from({ length: 1 + draw(draw(3) === 0 ? 12 : 3) }, () => this.#plan()).filter(
      (planned) => planned !== undefined,
    );
    const turns = new Set<number>();
    // commit.K4
    const planned = list.filter(({ write }) => {
      if (write.write !== "turn" && write.write !== "complete") return true;
      if (turns.has(write.run)) return write.write === "complete";
      turns.add(write.run);
      return true;
    });
    if (planned.length === 0) return;
    const outcomes = await this.#store.write(planned.map(({ write }) => write));
    for (const [index, { then }] of planned.entries()) then?.(outcomes[index] as Outcome);
  }

  #plan(): Planned | undefined {
    const draw = this.#draw;
    const kinds = [
      () => this.#start(),
      () => this.#start(),
      () => this.#turn(),
      () => this.#turn(),
      () => this.#turn(),
      () => this.#turn(),
      () => this.#claimTurns(),
      () => this.#claimItems(),
      () => this.#claimItems(),
      () => this.#endItem(),
      () => this.#endItem(),
      () => this.#message(),
      () => this.#message(),
      () => this.#control(),
      () => this.#outbox(),
      () => this.#queues(),
      () => this.#schedule(),
      () => this.#fork(),
      (): Planned => ({ write: { write: "fire-due", limit: 1 + draw(20) } }),
      (): Planned => ({ write: { write: "admit", definitions: this.#definitions(), limit: 1 + draw(5) } }),
    ];
    return kinds[draw(kinds.length)]!();
  }

  // ── starts ──

  #newRun(id: string): NewRun {
    const draw = this.#draw;
    const isFlow = draw(4) === 0;
    return {
      id,
      definition: draw(3) === 0 ? "pay" : "checkout",
      kind: "workflow",
      version: 1 + draw(2),
      priority: draw(3),
      tags: Array.from({ length: draw(3) }, () => `tag${draw(4)}`),
      started: JSON.stringify({ input: this.#count++ }),
      runtime: "random writes",
      ...(draw(5) === 0 && { slot: this.#line() }),
      ...(draw(6) === 0 && { deadlineMs: 1_000 + draw(30_000) }),
      ...(isFlow && { ...FLOW, version: 1 }),
    };
  }

  #start(): Planned {
    const draw = this.#draw;
    const run = this.#newRun(this.#newId());
    const claim: Claim | undefined = draw(2) === 0 ? this.#claim() : undefined;
    const write: StartWrite = {
      write: "start",
      run,
      ...(claim && { claim }),
      ...(draw(6) === 0 && { delayMs: draw(5_000) }),
      ...(draw(6) === 0 && { singleton: `s${draw(3)}` }),
      ...(draw(6) === 0 && { debounce: `d${draw(3)}`, delayMs: draw(5_000) }),
      ...(draw(5) === 0 && { messages: [this.#signal(), this.#signal()] }),
    };
    return {
      write,
      then: (outcome) => {
        const { status, record } = outcome as { status: string; record: Parameters<RandomWrites["hold"]>[0] };
        const isHeld = claim !== undefined && write.delayMs === undefined && run.slot === undefined;
        if (status === "started" && isHeld) this.hold(record, claim.token);
      },
    };
  }

  hold(
    record: { run: number; id: string; kind: string; head: number; chain: string; read: number; arrivals: number },
    token: string,
  ): void {
    const { run, id, kind, head, chain, read, arrivals } = record;
    const known = this.#held.get(run);
    const counted = { steps: known?.steps ?? 0, commands: known?.commands ?? head * 100 };
    this.#held.set(run, { run, id, kind, head, chain, read, arrivals, token, ...counted });
  }

  // ── turns ──

  #claimTurns(): Planned {
    const tokens = newTokens(1 + this.#draw(6));
    const write: Write = { write: "claim-turns", worker: this.#worker(), tokens, definitions: this.#definitions() };
    return {
      write,
      then: (outcome) => {
        for (const { record, token } of outcome as readonly ClaimedTurn[]) this.hold(record, token);
      },
    };
  }

  #turn(): Planned | undefined {
    const held = this.#pick([...this.#held.values()]);
    if (held === undefined) return undefined;
    if (this.#draw(15) === 0) return { write: { write: "return-turn", run: held.run, token: held.token } };
    return held.kind === "flow" ? this.#flowTurn(held) : this.#codeTurn(held);
  }

  #codeTurn(held: Holding): Planned {
    const draw = this.#draw;
    const says: [EntryType, string][] = [];
    const items: NewItem[] = [];
    const add = (item: Partial<NewItem> & Pick<NewItem, "item" | "name" | "kind">, type: EntryType): void => {
      says.push([type, item.item]);
      items.push({ priority: draw(3), seq: held.head + says.length, ...item });
    };
    for (let n = draw(3); n > 0; n--) {
      const command = held.commands++;
      if (draw(3) === 0)
        add(
          {
            item: `Timer(${command})`,
            kind: "timer",
            name: "TimerFired",
            availableAt: this.#store.now() + draw(9_000),
          },
          "TimerStarted",
        );
      else {
        const later = draw(4) === 0 ? { availableAt: this.#store.now() + draw(3_000) } : {};
        const place = draw(2) === 0 ? { slot: this.#line() } : draw(3) === 0 ? { claim: this.#claim() } : {};
        add(
          { item: `Task(${command})`, kind: "task", name: draw(2) === 0 ? "charge" : "ship", ...later, ...place },
          "TaskScheduled",
        );
      }
    }
    const mine = this.#items.filter(({ run, kind }) => run === held.run && kind === "task");
    const finished = draw(3) === 0 ? mine.slice(0, 1 + draw(2)) : [];
    for (const { item } of finished) says.push(["TaskCompleted", item]);
    const emits = Array.from({ length: draw(4) === 0 ? draw(4) : 0 }, (_, n): NewChunk => {
      const from = { step: this.#pick(STEPS)!, execution: 1 + draw(3) };
      if (draw(4) === 0) return { reset: true, ...from, ...(draw(2) === 0 && { attempt: `${from.step}#1/` }) };
      const isCode = draw(2) === 0;
      const text = { stream: this.#pick(STREAMS)!, data: `"${this.#count++}"` };
      return isCode ? { ...text, number: n } : { ...text, number: undefined, ...from };
    });
    const sends = Array.from({ length: draw(5) === 0 ? 1 + draw(2) : 0 }, () => {
      says.push(["MessageSent", `Message(${held.commands++})`]);
      return { seq: held.head + says.length, destination: this.#pick(DESTINATIONS)! };
    });
    const ending = draw(9);
    const then =
      ending === 0
        ? "completed"
        : ending === 1
          ? "failed"
          : ending === 2
            ? "continued"
            : draw(2) === 0
              ? "hold"
              : "release";
    if (then === "completed" || then === "failed") says.push([then === "completed" ? "RunCompleted" : "RunFailed", ""]);
    if (then === "continued") says.push(["RunContinued", ""]);
    const { entries, chain } = this.#entries(held, says);
    const hasSteps = draw(6) === 0;
    const checkpoints = hasSteps ? [this.#checkpoint(held, chain)] : undefined;
    const turn: TurnWrite = {
      write: "turn",
      run: held.run,
      token: held.token,
      head: draw(20) === 0 ? held.head + 1 : held.head,
      previousChain: held.chain,
      entries,
      chain,
      read: held.read + draw(held.arrivals - held.read + 1),
      finished: finished.map(({ item, token, slot }) => ({ item, token, ...(slot && { slot }) })),
      items,
      dropped: draw(6) === 0 ? [`Task(${held.head * 100 + draw(4)})`, `Timer(${held.head * 100 + draw(4)})`] : [],
      children: this.#children(),
      messages: this.#messagesOf(held),
      chunks: emits,
      outgoing: sends,
      ...(checkpoints && { checkpoints }),
      // Not drawn: saved seeds stay what they are.
      ...(held.head % 3 === 0 && { runtime: `later ${held.head % 4}` }),
      then,
      ...(then === "continued" && {
        next: {
          version: 1 + draw(2),
          started: `{"n":${this.#count++}}`,
          runtime: "later",
          carried: draw(2) === 0 ? [this.#signal()] : [],
          ...(draw(2) === 0 && { claim: this.#claim() }),
        },
      }),
      ...(then !== "hold" && then !== "release" && { unread: draw(2) }),
    };
    return { write: turn, then: (outcome) => this.#turned(held, turn, outcome) };
  }

  #turned(held: Holding, turn: TurnWrite, outcome: Outcome): void {
    const { status, children = [], next } = outcome as { status: string; children?: readonly never[]; next?: never };
    if (status !== "committed") return void this.#held.delete(held.run);
    for (const { item } of turn.finished)
      this.#items = this.#items.filter((one) => one.run !== held.run || one.item !== item);
    for (const one of turn.items)
      if (one.claim !== undefined && one.slot === undefined && one.kind === "task")
        this.#items.push({
          ...one,
          run: held.run,
          kind: "task",
          token: one.claim.token,
          attempt: 0,
        } as unknown as ClaimedItem);
    for (const [index, child] of turn.children.entries()) {
      const record = (children as readonly { id: string }[]).find(({ id }) => id === child.run.id);
      if (record !== undefined && child.claim !== undefined && turn.children[index]!.run.slot === undefined)
        this.hold(record as never, child.claim.token);
    }
    if (turn.next?.claim !== undefined && next !== undefined && (next as { status: string }).status === "running")
      this.hold(next, turn.next.claim.token);
    if (turn.then === "hold")
      Object.assign(held, { head: held.head + turn.entries.length, chain: turn.chain, read: turn.read });
    else this.#held.delete(held.run);
    if (turn.then === "failed") this.#failed.set(held.run, { head: held.head + turn.entries.length });
    for (const { step, key } of turn.checkpoints ?? []) this.#checkpoints.push({ run: held.run, step, key });
  }

  #entries(
    held: Holding,
    says: readonly (readonly [EntryType, string])[],
  ): { entries: readonly Entry[]; chain: string } {
    let { chain } = held;
    const entries = says.map(([type, command], index): Entry => {
      const data = `{"n":${this.#count++}}`;
      chain = chainAfter(chain, type, command, data);
      return { seq: held.head + 1 + index, type, command, data, at: this.#store.now(), mark: markOf(chain) };
    });
    return { entries, chain };
  }

  #checkpoint(held: Holding, chain: string) {
    const draw = this.#draw;
    const step = draw(5) === 0 ? Math.max(1, held.steps) : ++held.steps;
    const key = draw(12) === 0 ? `key${draw(20)}` : `key${this.#count++}`;
    const label = draw(3) === 0 ? "a label" : undefined;
    return { step, seq: held.head + 1, chain, key, label, state: draw(2) === 0 ? `{"state":${step}}` : undefined };
  }

  #children() {
    const draw = this.#draw;
    return Array.from({ length: draw(5) === 0 ? 1 + draw(2) : 0 }, () => ({
      run: { ...this.#newRun(this.#newId()) },
      command: `Child(${this.#count++})`,
      detached: draw(4) === 0,
      taken: { type: "ChildWorkflowFailed", target: "Child", data: "{}" } as const,
      ...(draw(2) === 0 && { claim: this.#claim() }),
    }));
  }

  #messagesOf(held: Holding): TurnWrite["messages"] {
    const draw = this.#draw;
    if (draw(4) > 0) return [];
    const others = [...this.#held.values()];
    const to = draw(2) === 0 ? this.#id() : (this.#pick(others)?.run ?? held.run);
    return [{ to, arrival: draw(3) === 0 ? CANCEL : this.#signal() }];
  }

  #flowTurn(held: Holding): Planned {
    const draw = this.#draw;
    const isOver = draw(12) === 0;
    const parts = isOver
      ? endParts("completed", [RUN_COMPLETED])
      : draw(3) === 0
        ? this.#spread()
        : { entries: [done("turn")] };
    const arrivals = isOver ? [] : ["a", "b", "c"].slice(draw(3)).map((node) => this.#arrivalAt(node, "input"));
    const write: Write = {
      ...completed({ run: held.run, item: "", token: "" }, arrivals, parts),
      fence: { turn: held.token, read: held.read + draw(held.arrivals - held.read + 1) },
      children: this.#children(),
      ...(isOver && { cancel: "{}" }),
    };
    return { write, then: () => this.#held.delete(held.run) };
  }

  /** Half of them with keys, queued in portions. */
  #spread() {
    const draw = this.#draw;
    const made = spreadOf(draw(5), 2, 2);
    if (draw(2) === 0) return made;
    return { ...made, spread: { ...made.spread, portion: this.#portion(Math.min(2, made.spread.required)) } };
  }

  #portion(items: number): SpreadPortion {
    const draw = this.#draw;
    const keys = Array.from({ length: items }, () => (draw(5) === 0 ? null : `k${draw(3)}`));
    return { keys, node: { ...NODE, slot: this.#line() }, next: MORE };
  }

  #arrivalAt(node: string, edge: string) {
    const draw = this.#draw;
    const required = draw(25) === 0 ? 3 : 1 + (node.charCodeAt(0) % 2);
    const place = draw(3) === 0 ? { slot: this.#line() } : draw(3) === 0 ? { claim: this.#claim() } : {};
    return arrival(node, edge, required, { node: { ...NODE, ...place }, ...(draw(3) === 0 && { cause: undefined }) });
  }

  // ── items ──

  #claimItems(): Planned {
    const names = this.#draw(6) === 0 ? Array.from({ length: 20 }, (_, n) => `other${n}`) : [];
    const write: Write = {
      write: "claim-items",
      worker: this.#worker(),
      tokens: newTokens(1 + this.#draw(8)),
      names: [...["charge", "ship", ROUTE].slice(this.#draw(2)), ...names],
      ...(this.#draw(2) === 0 && { turnsOf: this.#definitions() }),
      ...(this.#draw(3) === 0 && { refills: QUEUES.slice(this.#draw(QUEUES.length)) }),
    };
    return {
      write,
      then: (outcome) => {
        const { items } = outcome as unknown as { items: readonly ClaimedItem[] };
        this.#items.push(...items);
        for (const { turn, token } of items) if (turn !== undefined) this.hold(turn, token);
      },
    };
  }

  #endItem(): Planned | undefined {
    const draw = this.#draw;
    const item = this.#pick(this.#items);
    if (item === undefined) return undefined;
    const { run, token, slot: line, kind } = item;
    const fence = { run, item: item.item, token, ...(line && { slot: line }) };
    if (draw(10) > 0) this.#items = this.#items.filter((one) => one !== item);
    if (draw(4) === 0) {
      const later = draw(2) === 0 ? { availableAt: this.#store.now() + draw(4_000) } : {};
      return {
        write: {
          write: "return-item",
          ...fence,
          attempt: item.attempt + 1,
          ...later,
          ...(draw(2) === 0 && { failures: "[1]" }),
          ...(kind === "node" && draw(2) === 0 && { into: { name: NODE.name, slot: this.#line() } }),
        },
      };
    }
    if (kind === "task")
      return {
        write: { write: "end-item", ...fence, arrival: { type: "TaskCompleted", target: item.item, data: "1" } },
      };
    if (draw(12) === 0) return { write: { write: "stop", ...fence, status: "blocked", evidence: '{"why":1}' } };
    // The last item may be the only one that is left.
    if (item.item === MORE.item)
      return { write: completeWrite(run, fence, { portion: { barrier: "saved", ...this.#portion(1) } }) };
    const index = /\[(\d+)\]$/.exec(item.item);
    if (index !== null)
      return {
        write: completed(item, [arrival("saved", "saved[]", undefined, { index: Number(index[1]) })], {
          advances: [{ barrier: "saved", node: NODE }],
        }),
      };
    const isOver = draw(10) === 0;
    const arrivals = isOver ? [] : ["c", "d", "e"].slice(draw(4)).map((node) => this.#arrivalAt(node, item.item));
    const over = draw(2) === 0 ? endParts("completed", [RUN_COMPLETED]) : endParts("failed", [RUN_FAILED]);
    return { write: completed(item, arrivals, isOver ? { ...over, cancel: "{}" } : {}) };
  }

  // ── messages and control ──

  #message(): Planned {
    const draw = this.#draw;
    const to = draw(4) === 0 ? this.#newId() : this.#id();
    return {
      write: {
        write: "message",
        to,
        arrival: draw(6) === 0 ? CANCEL : this.#signal(),
        once: draw(3) === 0,
        ...(draw(3) === 0 && { dedupId: `m${draw(6)}` }),
        ...(draw(8) === 0 && { definition: "checkout" }),
        ...(draw(3) === 0 && {
          beforeStart: { definition: "checkout", kind: "workflow" as const, version: 1, runtime: "early" },
        }),
      },
      then: (outcome) => {
        // A run cannot have read more than has arrived.
        const { status, run } = outcome as { status: string; run?: number };
        const held = this.#held.get(run ?? 0);
        if (status === "committed" && held !== undefined) held.arrivals += 1;
      },
    };
  }

  #control(): Planned {
    const draw = this.#draw;
    const id = this.#id();
    const [run, failed] = this.#pick([...this.#failed]) ?? [0, { head: 0 }];
    const held = this.#pick([...this.#held.values()]);
    const writes: Write[] = [
      { write: "pause", id, ...(draw(3) === 0 && { own: { token: held?.token, evidence: '{"own":1}' } }) },
      { write: "pause", id: held?.id ?? id },
      { write: "resume", id },
      { write: "resume", id: held?.id ?? id },
      { write: "terminate", id, data: '{"by":1}', answer: '{"answer":1}', cancel: '{"cancel":1}' },
      {
        write: "retry",
        run,
        head: failed.head,
        data: '{"again":1}',
        items: [{ item: `Task(r${this.#count++})`, kind: "task", name: "charge", priority: 0, seq: 1 }],
        children: [],
        answers: draw(2) === 0 ? [this.#signal()] : [],
        ...(draw(3) === 0 && { singleton: `s${draw(3)}` }),
        ...(draw(3) === 0 && { deadlineMs: draw(9_000) }),
        ...(draw(3) === 0 && { slot: this.#line() }),
        ...(draw(3) === 0 && { reopened: ["signal1"] }),
      },
      {
        write: "migrate",
        run: held?.run ?? 1,
        head: held?.head ?? 1,
        chain: held?.chain ?? "none",
        version: 1 + draw(2),
        data: '{"from":1,"to":2}',
        routes: ["import\n1", "import\n2"],
      },
      {
        write: "stop",
        run: held?.run ?? 1,
        token: held?.token ?? "none",
        status: "determinism_violation",
        evidence: '{"w":2}',
      },
    ];
    const write = writes[draw(writes.length)]!;
    return { write, then: () => void (write.write === "retry" && this.#failed.delete(run)) };
  }

  #fork(): Planned | undefined {
    const from = this.#pick(this.#checkpoints);
    if (from === undefined) return undefined;
    const key = `key${this.#count++}`;
    if (this.#draw(4) === 0) {
      const seq = this.#draw(3);
      const origin = { run: from.run, seq, mark: seq === 0 ? undefined : this.#draw(3) };
      return { write: { write: "fork", run: { ...this.#newRun(this.#newId()) }, origin, settled: [] } };
    }
    const origin = this.#draw(5) === 0 ? { ...from, key: "other" } : from;
    const checkpoint = { step: from.step, key, label: undefined, state: '{"s":1}' };
    return {
      write: {
        write: "fork",
        run: { ...this.#newRun(this.#newId()) },
        origin,
        step: { data: '{"fork":1}', checkpoint },
        settled: [{ target: "signal0", data: "{}" }],
      },
    };
  }

  #outbox(): Planned {
    const draw = this.#draw;
    const taken = this.#pick(this.#messages);
    if (taken === undefined || draw(3) === 0) {
      const tokens = newTokens(draw(4));
      const write: Write = { write: "claim-messages", worker: this.#worker(), tokens, destinations: DESTINATIONS };
      return {
        write,
        then: (outcome) => void this.#messages.push(...(outcome as unknown as { messages: ClaimedMessage[] }).messages),
      };
    }
    this.#messages = this.#messages.filter((one) => one !== taken);
    const { firstRun: line, run, seq, token, attempt } = taken;
    if (draw(3) > 0) return { write: { write: "message-delivered", firstRun: line, run, seq, token } };
    const availableAt = this.#store.now() + draw(4_000);
    return { write: { write: "return-message", firstRun: line, run, seq, token, attempt: attempt + 1, availableAt } };
  }

  #queues(): Planned {
    const draw = this.#draw;
    const name = this.#pick(QUEUES)!;
    const limits = LIMITS[draw(LIMITS.length)]!;
    if (draw(2) === 0) return { write: { write: "declare-queue", name, limits } };
    return {
      write: {
        write: "change-queue",
        name,
        ...(draw(2) === 0 && { paused: draw(3) === 0 }),
        ...(draw(2) === 0 && { limits }),
      },
    };
  }

  #schedule(): Planned {
    const draw = this.#draw;
    const name = `every${draw(3)}`;
    if (draw(8) === 0) return { write: { write: "remove-schedule", name } };
    const known = this.#schedules.find((one) => one.name === name);
    const starts = Array.from({ length: draw(3) }, () => this.#newRun(this.#newId()));
    const now = this.#store.now();
    return {
      write: {
        write: "put-schedule",
        fence: draw(10) === 0 ? "wrong" : known?.token,
        token: newToken(),
        schedule: {
          name,
          definition: "checkout",
          version: 1,
          input: draw(2) === 0 ? undefined : '{"i":1}',
          timing: { everyMs: 1_000, anchor: 0 },
          overlap: "queue",
          catchUp: "all",
          jitterMs: 0,
          paused: draw(5) === 0,
          nextAt: now + draw(5_000),
          dueAt: draw(5) === 0 ? undefined : now + draw(5_000),
          lastAt: undefined,
          lastRun: starts[0]?.id ?? (draw(2) === 0 ? this.#id() : undefined),
          queued: draw(3) === 0 ? [now] : [],
        },
        starts,
        ...(draw(4) === 0 && { cancel: { to: this.#id(), arrival: CANCEL } }),
      },
      then: (outcome) => {
        const { status, record } = outcome as { status: string; record: ScheduleRecord };
        if (status !== "committed") return;
        this.#schedules = [...this.#schedules.filter((one) => one.name !== name), record];
      },
    };
  }

  // ── values ──

  #signal(): Arrival {
    return {
      type: this.#draw(2) === 0 ? "SignalReceived" : "PromiseResolved",
      target: `signal${this.#draw(3)}`,
      data: `"${this.#count++}"`,
    };
  }

  #line(): QueueSlot {
    return { queue: this.#pick(QUEUES)!, ...(this.#draw(3) > 0 && { key: `k${this.#draw(2)}` }) };
  }

  #claim(): Claim {
    return { worker: this.#worker(), token: newToken() };
  }

  #definitions() {
    const all = ["checkout", "pay"].flatMap((name) => [1, 2].map((version) => ({ name, version })));
    const many = this.#draw(6) === 0 ? Array.from({ length: 20 }, (_, n) => ({ name: `other${n}`, version: 1 })) : [];
    return [...all.slice(this.#draw(3)), { name: "import", version: 1 }, ...many];
  }

  #worker(): number {
    return this.#pick(this.#workers)!;
  }

  /** The id of a run that may exist. */
  #id(): string {
    return this.#ids[this.#draw(this.#ids.length)] ?? "missing";
  }

  /** Mostly none. */
  #newId(): string {
    if (this.#draw(3) === 0) return this.#id();
    const id = `n${this.#count++}`;
    this.#ids.push(id);
    if (this.#ids.length > IDS) this.#ids.splice(this.#draw(IDS), 1);
    return id;
  }

  #pick<T>(from: readonly T[]): T | undefined {
    return from[this.#draw(Math.max(1, from.length))];
  }
}

const CANCEL: Arrival = { type: "CancelRequested", target: "", data: "{}" };
const LIMITS: readonly QueueLimits[] = [
  {},
  { concurrency: 1 },
  { concurrency: 2, perKey: { concurrency: 1 } },
  { rate: { limit: 2, perMs: 3_000 } },
  { perKey: { concurrency: 1, rate: { limit: 1, perMs: 2_000 } } },
  { perKey: { rate: { limit: 2, perMs: 5_000 } } },
];
