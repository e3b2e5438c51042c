import type {
  AdmitOutcome,
  Backlog,
  ClaimItemsOutcome,
  QueueLimits,
  QueueState,
  Store,
  Write,
} from "../../../src/kernel/index.ts";
import { answering, items, methods, rewriting, without, type Mutant } from "./mutant.ts";

function limits(name: string, change: (limits: QueueLimits) => QueueLimits): Mutant {
  return rewriting(name, (write) => {
    if (write.write === "declare-queue") return { ...write, limits: change(write.limits) };
    return write.write === "change-queue" && write.limits ? { ...write, limits: change(write.limits) } : write;
  });
}

function slots(name: string, change: (count: number) => number): Mutant {
  return answering(name, (outcome, write) => {
    const leased = write.write === "claim-items" ? (outcome as ClaimItemsOutcome).slots : undefined;
    if (leased === undefined) return outcome;
    return { ...outcome, slots: leased.map(({ queue, slots: count }) => ({ queue, slots: change(count) })) };
  });
}

export const queuesMutants: readonly Mutant[] = [
  limits("a queue has one slot too many", (all) =>
    all.concurrency === undefined ? all : { ...all, concurrency: all.concurrency + 1 },
  ),
  limits("limits per key are ignored", (all) => without(all, "perKey")),
  limits("rates are ignored", (all) => without({ ...all, perKey: without(all.perKey ?? {}, "rate") }, "rate")),
  limits("rates admit a millisecond late", (all) => ({
    ...all,
    ...(all.rate && { rate: { ...all.rate, perMs: all.rate.perMs + 1 } }),
    ...(all.perKey?.rate && {
      perKey: { ...all.perKey, rate: { ...all.perKey.rate, perMs: all.perKey.rate.perMs + 1 } },
    }),
  })),
  items("items forget their queue", (item) => without(item, "slot")),
  rewriting("a key that is freed stays taken", (write) => {
    if (write.write === "end-item") return without(write, "slot");
    if (write.write === "return-item") return without(write, "slot");
    if (write.write !== "turn") return write;
    return { ...write, finished: write.finished.map((fence) => without(fence, "slot")) };
  }),
  rewriting("a queue cannot be paused", (write) => (write.write === "change-queue" ? without(write, "paused") : write)),
  rewriting("changed limits are not stored", (write) =>
    write.write === "change-queue" ? without(write, "limits") : write,
  ),
  answering("a deployment undoes what an operator changed", async (outcome, write, store) => {
    if (write.write === "declare-queue")
      await store.write([{ write: "change-queue", name: write.name, limits: write.limits }]);
    return outcome;
  }),
  answering("a claim does not return when a rate admits more", (outcome, write) =>
    write.write === "claim-items" ? { ...(outcome as ClaimItemsOutcome), nextAt: undefined } : outcome,
  ),
  answering("a claim does not return that work is held back", (outcome, write) => {
    if (write.write === "claim-items") return { ...(outcome as ClaimItemsOutcome), held: false };
    return write.write === "admit" ? { ...(outcome as AdmitOutcome), held: false } : outcome;
  }),
  rewriting("a refill claims from everywhere", (write) =>
    write.write === "claim-items" ? without(write, "refills") : write,
  ),
  methods("a refill goes before the writes that free its slots", (store: Store) => ({
    write: async (writes: readonly Write[]) => {
      const isRefill = (write: Write): boolean => write.write === "claim-items" && write.refills !== undefined;
      const order = [...writes.filter(isRefill), ...writes.filter((write) => !isRefill(write))];
      const outcomes = await store.write(order);
      return writes.map((write) => outcomes[order.indexOf(write)]);
    },
  })),
  answering("a refill forgets what it has leased", (outcome, write) =>
    write.write === "claim-items" && write.refills !== undefined ? { ...outcome, items: [] } : outcome,
  ),
  rewriting("no items are leased ahead of slots", (write) =>
    write.write === "claim-items" ? without(write, "ahead") : write,
  ),
  rewriting("slots that a worker gives back stay leased", (write) =>
    write.write === "claim-items" ? without(write, "returnedSlots") : write,
  ),
  slots("a worker uses one slot more than it has leased", (count) => (count === 0 ? 0 : count + 1)),
  slots("a worker keeps slots of a queue that is closed to it", (count) => Math.max(1, count)),
  rewriting("a worker leases slots for all items that it holds", (write) =>
    write.write === "claim-items" && write.ahead !== undefined
      ? { ...write, ahead: write.ahead.map((one) => without(one, "slots")) }
      : write,
  ),
  answering("slots are leased to a worker that has none", (outcome, write) =>
    write.write === "claim-items" && (outcome as ClaimItemsOutcome).slots?.length === 0
      ? { ...outcome, slots: [{ queue: "mail", slots: 1 }] }
      : outcome,
  ),
  rewriting("a claim of items takes no turns", (write) =>
    write.write === "claim-items" ? without(write, "turnsOf") : write,
  ),
  rewriting("a claim of items takes the turns of all definitions", (write) =>
    write.write === "claim-items" && write.turnsOf !== undefined
      ? { ...write, turnsOf: [{ name: "checkout", version: 1 }] }
      : write,
  ),
  answering("a second pause of a queue replaces the time of the first", async (outcome, write, store) => {
    if (write.write === "change-queue" && write.paused === true)
      for (const paused of [false, true]) await store.write([{ write: "change-queue", name: write.name, paused }]);
    return outcome;
  }),
  methods("queues are counted as empty", (store: Store) => ({
    listQueues: async (): Promise<readonly QueueState[]> =>
      (await store.listQueues()).map((queue) => ({ ...queue, ready: 0, leased: 0 })),
  })),
  methods("the backlog is counted without a limit", (store: Store) => ({ readBacklog: () => store.readBacklog() })),
  methods("only the highest priority of the backlog is counted", (store: Store) => ({
    readBacklog: async (upTo?: number): Promise<readonly Backlog[]> =>
      (await store.readBacklog(upTo)).map((row) => ({ ...row, oldestAt: store.now() })),
  })),
  methods("the backlog has no labels", (store: Store) => ({
    readBacklog: async (upTo?: number): Promise<readonly Backlog[]> =>
      (await store.readBacklog(upTo)).map((row) => ({ ...row, label: undefined })),
  })),
  items("long names are truncated", (item) => ({ ...item, name: item.name.slice(0, 400) })),
  methods("leased work is part of the backlog", (store: Store) => ({
    readBacklog: async (upTo?: number): Promise<readonly Backlog[]> => {
      const { items } = await store.info();
      const [first, ...rest] = await store.readBacklog(upTo);
      if (first !== undefined) return [{ ...first, count: first.count + items.leased }, ...rest];
      const held = { kind: "task", name: "charge", version: undefined, queue: undefined, label: undefined } as const;
      return items.leased === 0 ? [] : [{ ...held, count: items.leased, oldestAt: store.now() }];
    },
  })),
  rewriting("a delay is a millisecond short", (write) =>
    write.write === "start" && write.delayMs !== undefined ? { ...write, delayMs: write.delayMs - 1 } : write,
  ),
  rewriting("runs forget their queue", (write) => {
    if (write.write === "start") return { ...write, run: without(write.run, "slot") };
    if (write.write !== "turn") return write;
    return { ...write, children: write.children.map((child) => ({ ...child, run: without(child.run, "slot") })) };
  }),
  rewriting("a queue starts all its runs", (write) => (write.write === "admit" ? { ...write, limit: 1_000 } : write)),
  rewriting("a queue starts runs of every version", (write) => {
    if (write.write !== "admit") return write;
    const definitions = write.definitions.flatMap(({ name }) => [1, 2, 3].map((version) => ({ name, version })));
    return { ...write, definitions };
  }),
  rewriting("a singleton is started again", (write) => (write.write === "start" ? without(write, "singleton") : write)),
  rewriting("a debounced start creates another run", (write) =>
    write.write === "start" ? without(write, "debounce") : write,
  ),
  rewriting("the first of several debounced starts counts", (write) =>
    write.write === "start" && write.debounce !== undefined
      ? { ...without(write, "debounce"), singleton: write.debounce }
      : write,
  ),
  answering("the holder of a cancelled run does not learn that its code never ran", (outcome, write) =>
    write.write === "claim-turns" && Array.isArray(outcome)
      ? outcome.map((turn) => ({ ...turn, inbox: turn.inbox.map((row: object) => ({ ...row, target: "" })) }))
      : outcome,
  ),
];
