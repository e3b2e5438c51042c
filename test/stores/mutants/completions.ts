import type {
  ClaimItemsOutcome,
  CompleteOutcome,
  CompleteWrite,
  NodeArrival,
  NodeInput,
  NodeItem,
  Outcome,
  Readiness,
  SpreadPortion,
  Store,
  Write,
} from "../../../src/kernel/index.ts";
import { answering, changed, methods, records, rewriting, without, writing, type Mutant } from "./mutant.ts";

function completions(
  name: string,
  rewrite: (write: CompleteWrite, store: Store) => CompleteWrite | Promise<CompleteWrite>,
): Mutant {
  return rewriting(name, (write, store) => (write.write === "complete" ? rewrite(write, store) : write));
}

function arrivals(name: string, change: (arrival: NodeArrival, write: CompleteWrite) => NodeArrival): Mutant {
  return completions(name, (write) => ({ ...write, arrivals: write.arrivals.map((one) => change(one, write)) }));
}

function outcomes(name: string, change: (outcome: CompleteOutcome, write: CompleteWrite) => CompleteOutcome): Mutant {
  return answering(name, (outcome: Outcome, write: Write) =>
    write.write === "complete" ? change(outcome as CompleteOutcome, write) : outcome,
  );
}

/** Rewrites every node that a write can queue. */
function nodes(name: string, change: (node: NodeItem) => NodeItem): Mutant {
  return completions(name, ({ spread, ...write }) => ({
    ...write,
    arrivals: write.arrivals.map((one) => ({ ...one, node: change(one.node) })),
    advances: write.advances.map(({ barrier, node }) => ({ barrier, node: change(node) })),
    ...(spread && { spread: { ...spread, barrierNode: change(spread.barrierNode), claims: [] } }),
  }));
}

function portions(name: string, change: (portion: SpreadPortion) => SpreadPortion): Mutant {
  return completions(name, ({ spread, portion, ...write }) => ({
    ...write,
    ...(portion && { portion: { ...portion, ...change(portion) } }),
    ...(spread && { spread: { ...spread, ...(spread.portion && { portion: change(spread.portion) }) } }),
  }));
}

function inputs(name: string, change: (inputs: readonly NodeInput[]) => readonly NodeInput[]): Mutant {
  return methods(name, (store) => ({
    readInputs: async (asked: Parameters<Store["readInputs"]>[0]) => (await store.readInputs(asked)).map(change),
  }));
}

async function readinessOf(store: Store, run: number, node: string): Promise<Readiness | undefined> {
  return (await store.readReadiness(run)).find((one) => one.node === node);
}

const COMMITTED = { status: "committed", seq: 1, at: 0, queued: [], children: [], notified: [], more: false } as const;

export const completionsMutants: readonly Mutant[] = [
  completions("the token of a node is not checked", async (write, store) => {
    const { fence, run } = write;
    if (!("item" in fence)) return write;
    const [token] = await store.readItemTokens([{ run, item: fence.item }]);
    return { ...write, fence: { ...fence, token: token ?? fence.token } };
  }),
  outcomes("a stale completion returns committed", (outcome) => (outcome.status === "stale" ? COMMITTED : outcome)),
  completions("arrivals get lost", (write) => ({ ...write, arrivals: [] })),
  completions("a node is queued only by an arrival that comes alone", (write) => {
    const alone = write.arrivals.filter(({ target }, n, all) => all.findIndex((one) => one.target === target) === n);
    return { ...write, arrivals: alone };
  }),
  arrivals("a repeated arrival counts again", (arrival, write) => ({
    ...arrival,
    edge: `${"item" in write.fence ? write.fence.item : ""} ${arrival.edge}`,
  })),
  arrivals("edges are not distinguished", (arrival) => ({ ...arrival, edge: "" })),
  completions("an arrival too many is ignored", async (write, store) => {
    const kept: NodeArrival[] = [];
    for (const arrival of write.arrivals) {
      const row = await readinessOf(store, write.run, arrival.target);
      const required = row?.required ?? arrival.required ?? 0;
      if ((row?.completed ?? 0) < required) kept.push(arrival);
    }
    return { ...write, arrivals: kept };
  }),
  completions("`required` is not compared", async (write, store) => {
    const same: NodeArrival[] = [];
    for (const arrival of write.arrivals) {
      const row = await readinessOf(store, write.run, arrival.target);
      same.push({ ...arrival, required: row?.required ?? arrival.required });
    }
    return { ...write, arrivals: same };
  }),
  outcomes("a completion that breaks readiness returns stale", (outcome) =>
    outcome.status === "blocked" ? { status: "stale" } : outcome,
  ),
  outcomes("a completion returns the wrong seq", (outcome) =>
    outcome.status === "committed" ? { ...outcome, seq: 1 } : outcome,
  ),
  inputs("inputs are read in the order of their writes", (read) => read.toSorted((a, b) => a.seq - b.seq)),
  inputs("inputs are read in the text order of their index", (read) =>
    read.toSorted((a, b) => (String(a.index) < String(b.index) ? -1 : 1)),
  ),
  completions("a spread queues everything at once", ({ spread, ...write }) => ({
    ...write,
    ...(spread && { spread: { ...spread, window: Math.max(spread.required, 1) } }),
  })),
  completions("a spread of no items queues nothing", (write) =>
    write.spread?.required === 0 ? (without(write, "spread") as CompleteWrite) : write,
  ),
  completions("an item that ends queues no other", (write) => ({ ...write, advances: [] })),
  portions("the items of a portion have no keys", (portion) => ({ ...portion, keys: portion.keys.map(() => null) })),
  portions("all items of a portion have the same key", (portion) => ({
    ...portion,
    keys: portion.keys.map(() => "a"),
  })),
  portions("a portion queues nothing", (portion) => ({ ...portion, keys: [] })),
  nodes("nodes are never leased by the write that queues them", (node) => without(node, "claim")),
  records("a flow is always running", (record) =>
    record.kind === "flow" && record.status === "waiting" ? { ...record, status: "running" } : record,
  ),
  outcomes("a completion never returns `more`", (outcome) =>
    outcome.status === "committed" ? { ...outcome, more: false } : outcome,
  ),
  answering("nodes are returned as tasks", (outcome, write) => {
    if (write.write !== "claim-items") return outcome;
    const { items, ...waiting } = outcome as ClaimItemsOutcome;
    return { ...waiting, items: items.map((item) => ({ ...item, kind: "task" })) };
  }),
  nodes("nodes ignore their queue", (node) => without(node, "slot")),
  {
    name: "a paused flow continues",
    wrap: (store) =>
      writing(
        store,
        (write) => (write.write === "pause" ? { write: "fire-due", limit: 0 } : write),
        async (outcome, write) => {
          if (write.write !== "pause") return outcome;
          return { status: "committed", run: (await store.findRun(write.id))?.run ?? 0 };
        },
      ),
  },
  methods("due nodes are not counted", (store) => ({
    readBacklog: async () => (await store.readBacklog()).filter(({ kind }) => kind !== "node"),
  })),
  completions("a flow never ends", (write) => ({ ...write, then: "continue" })),
  completions("messages of a completion get lost", (write) => ({ ...write, messages: [] })),
  completions(
    "live children of a flow are not cancelled at its end",
    (write) => without(write, "cancel") as CompleteWrite,
  ),
  completions("children of nodes are not started", (write) => ({ ...write, children: [] })),
  rewriting("a retry forgets the nodes", (write) => (write.write === "retry" ? { ...write, items: [] } : write)),
  {
    name: "arrivals and counters outlive their pruned run",
    wrap(store) {
      const seen = new Map<number, readonly Readiness[]>();
      return changed(store, {
        async readReadiness(run: number) {
          const found = await store.readReadiness(run);
          if (found.length > 0) seen.set(run, found);
          return seen.get(run) ?? [];
        },
      });
    },
  },
];
