// Mutants: the simulated world with one bug, which the simulation must find. A mutant wraps a store and changes its arguments or
// its results; production code has no switch for it.

import type { Outcome, OutcomeOf, Store, TurnWrite, Write } from "../../src/kernel/index.ts";
import type { Lock, Query } from "../../src/stores/remote/query.ts";
import type { SimBackend, SimConnection } from "./store/sim-backend.ts";
import { changed, writing } from "../stores/mutants/mutant.ts";
import type { ProcessInstance } from "./process.ts";
import { changeConnections, ROLLBACK_MUTANTS, unreconciled } from "./rollback-mutants.ts";
import type { SimOptions } from "./simulate.ts";

export interface SimMutant {
  /** The bug. */
  readonly name: string;
  /** The workload that finds it soonest. */
  readonly scenario: readonly string[];
  /** The first seed that finds it, when last run. */
  readonly foundBy: number;
  /** The violation that must find it, where others would not prove that it is this mutant. */
  readonly foundAs?: RegExp;
  readonly options: Pick<
    SimOptions,
    "store" | "mode" | "faults" | "always" | "workers" | "scale" | "wrap" | "wrapBackend"
  >;
}

/** The first seed that finds a mutant, if it is not among the first few, when last run. */
const FOUND_BY: Readonly<Record<string, number>> = {
  "a result is accepted without checking its token": 138,
  "a due timer is lost when its worker dies": 102,
  "a lease is computed with the worker's own clock": 154,
};

type Wrap = (store: Store, instance: ProcessInstance) => Store;

function mutant(name: string, scenario: readonly string[], wrap: Wrap): SimMutant {
  return { name, scenario, foundBy: FOUND_BY[name] ?? 1, options: { store: "sqlite", wrap } };
}

/** The same, around the simulated database. */
function backendMutant(
  name: string,
  scenario: readonly string[],
  change: (backend: SimBackend) => void,
  options: Pick<SimMutant["options"], "faults" | "always" | "wrap"> = {},
): SimMutant {
  const wrapBackend = (backend: SimBackend): SimBackend => {
    change(backend);
    return backend;
  };
  const world = { store: "remote", mode: "rc", wrapBackend, ...options } as const;
  return { name, scenario, foundBy: FOUND_BY[name] ?? 1, options: world };
}

/** Changes every connection of a process. */
function connectionMutant(
  name: string,
  scenario: readonly string[],
  change: (connection: SimConnection) => void,
): SimMutant {
  return backendMutant(name, scenario, (backend) => changeConnections(backend, change));
}

/** On a database with MySQL's default isolation. */
function rrMutant(name: string, scenario: readonly string[], change: (connection: SimConnection) => void): SimMutant {
  const one = connectionMutant(name, scenario, change);
  return { ...one, options: { ...one.options, mode: "rr" } };
}

/** A plain read: from then on the transaction sees that snapshot. */
const ANYTHING: Query = { kind: "select", table: "meta", where: [], limit: 1, lock: "none" };

/** Queries with the wrong locks. */
function asking(change: (query: Query) => Query): (connection: SimConnection) => void {
  return (connection) => {
    const ask = connection.query.bind(connection);
    connection.query = (queries) => ask(queries.map(change));
  };
}

function withLock(query: Query, was: Lock, is: Lock): Query {
  return "lock" in query && query.lock === was ? { ...query, lock: is } : query;
}

const isOf = <K extends Write["write"]>(write: Write, kind: K): write is Extract<Write, { write: K }> =>
  write.write === kind;

/** Replaces one write of a kind; the other writes of its list are applied before it, unchanged. */
function instead<K extends Write["write"]>(
  kind: K,
  apply: (write: Extract<Write, { write: K }>, store: Store, instance: ProcessInstance) => Promise<Outcome>,
): Wrap {
  return (store, instance) =>
    changed(store, {
      async write(writes: readonly Write[]) {
        const outcomes: Outcome[] = [];
        for (const write of writes)
          outcomes.push(isOf(write, kind) ? await apply(write, store, instance) : (await store.write([write]))[0]);
        return outcomes;
      },
    });
}

async function one<W extends Write>(store: Store, write: W): Promise<OutcomeOf<W>> {
  const [outcome] = await store.write([write]);
  return outcome as OutcomeOf<W>;
}

const EFFECTS = {
  items: [],
  children: [],
  messages: [],
  outgoing: [],
  dropped: [],
} as const satisfies Partial<TurnWrite>;

/**
 * Every world has commits with an unknown outcome, and nothing else. A worker releases leases it does not know
 * (lease-reconciler.R1), which hides almost every such mutant: here it does not.
 */
const ONLY_UNKNOWN = { faults: ["unknown"], always: ["unknown"], wrap: unreconciled } as const;

export const MUTANTS: readonly SimMutant[] = [
  mutant("a result is accepted without checking its token", ["tasks"], (store) =>
    writing(store, async (write) => {
      if (!isOf(write, "end-item")) return write;
      const [token] = await store.readItemTokens([write]);
      return token === undefined ? write : { ...write, token };
    }),
  ),
  mutant("a turn that lost its lease is reported as committed", ["tasks", "cancel"], (store) =>
    writing(
      store,
      (write) => write,
      (outcome, write) =>
        isOf(write, "turn") && "status" in outcome && outcome.status === "lease_lost"
          ? { status: "committed", more: false, children: [] }
          : outcome,
    ),
  ),
  mutant(
    "the effects of a turn are written in a second transaction",
    ["programs"],
    instead("turn", async (write, store, instance) => {
      const isPlain = write.then !== "hold" || (write.items.length === 0 && write.children.length === 0);
      if (isPlain) return one(store, write);
      const first = await one(store, { ...write, ...EFFECTS });
      if (first.status !== "committed") return first;
      await instance.loop.sleep(20);
      const then: TurnWrite = { ...write, entries: [], head: write.head + write.entries.length };
      return instance.loop.isDead ? first : one(store, then);
    }),
  ),
  mutant("a list is acknowledged before it is durable", ["programs"], (store, instance) =>
    changed(store, {
      async write(writes: readonly Write[]) {
        const mayWait =
          writes.length > 0 &&
          writes.every((write) => isOf(write, "turn") && write.children.length === 0 && write.next === undefined);
        if (!mayWait) return store.write(writes);
        void instance.loop.sleep(15).then(() => store.write(writes).catch(() => {}));
        return writes.map(() => ({ status: "committed", more: false, children: [] }));
      },
    }),
  ),
  mutant("a message is delivered under another key each time", ["outbox"], (store) =>
    writing(
      store,
      (write) => write,
      (outcome, write) => {
        if (!isOf(write, "claim-messages")) return outcome;
        const claimed = outcome as OutcomeOf<typeof write>;
        return {
          ...claimed,
          messages: claimed.messages.map((message) => ({ ...message, command: `${message.command}#${message.token}` })),
        };
      },
    ),
  ),
  mutant("a message is marked as delivered before it is", ["outbox"], (store) =>
    writing(
      store,
      (write) => write,
      async (outcome, write) => {
        if (!isOf(write, "claim-messages")) return outcome;
        for (const { firstRun, run, seq, token } of (outcome as OutcomeOf<typeof write>).messages)
          await store.write([{ write: "message-delivered", firstRun, run, seq, token }]);
        return outcome;
      },
    ),
  ),
  mutant(
    "a start that is repeated creates two runs",
    ["programs", "bank"],
    instead("start", async (write, store) => {
      const outcome = await one(store, write);
      if (outcome.status !== "exists") return outcome;
      return one(store, { ...write, run: { ...write.run, id: `${write.run.id}-again` } });
    }),
  ),
  mutant("a node is queued when one of its inputs is missing", ["flows"], (store) =>
    writing(store, (write) => {
      if (!isOf(write, "complete")) return write;
      const early = (required: number | undefined): number | undefined =>
        required === undefined || required < 2 ? required : required - 1;
      return { ...write, arrivals: write.arrivals.map((each) => ({ ...each, required: early(each.required) })) };
    }),
  ),
  mutant("a lease is computed with the worker's own clock", ["tasks"], (store, instance) => {
    const own = (leaseMs: number): number => leaseMs + instance.loop.skewMs;
    return changed(store, {
      registerWorker: (name: string, leaseMs: number, about?: string) =>
        store.registerWorker(name, own(leaseMs), about),
      renewLease: (worker: number, leaseMs: number, doing?: string) => store.renewLease(worker, own(leaseMs), doing),
    });
  }),
  mutant("a repeated message is delivered twice", ["collect"], (store) =>
    writing(store, (write) => {
      if (!isOf(write, "message")) return write;
      const { dedupId: _dedupId, ...again } = write;
      return again;
    }),
  ),
  mutant("a message that arrives meanwhile is marked as read", ["collect"], (store) =>
    writing(store, async (write) => {
      if (!isOf(write, "turn") || write.entries.length === 0) return write;
      const [pulse] = await store.readProgress([write.run]);
      return { ...write, read: Math.max(write.read, pulse?.arrivals ?? 0) };
    }),
  ),
  mutant("a due timer is lost when its worker dies", ["programs", "cancel"], (store) =>
    writing(store, (write) =>
      isOf(write, "turn")
        ? { ...write, items: write.items.filter(({ kind, seq }) => kind !== "timer" || seq % 7 !== 0) }
        : write,
    ),
  ),
  mutant("a dead worker's work is not taken over", ["programs", "bank"], (store) =>
    changed(store, { reap: () => Promise.resolve({ workers: 0, turns: 0, items: 0 }) }),
  ),
  {
    ...mutant(
      "a call reserves once per step, not before every execution",
      ["spending"],
      instead("reserve", async (write, store) => (write.execution > 1 ? { status: "reserved" } : one(store, write))),
    ),
    foundAs: /^budget: .* was charged/,
  },
  connectionMutant(
    "rows are read without a lock and written back",
    ["programs", "collect"],
    asking((query) => withLock(query, "update", "none")),
  ),
  connectionMutant(
    "a claim takes rows that other claims have locked",
    ["programs", "flows"],
    asking((query) => withLock(query, "skip", "none")),
  ),
  connectionMutant("assumed rows are not verified", ["programs", "collect"], (connection) => {
    const commit = connection.commit.bind(connection);
    connection.commit = (batch, mark, changes) =>
      commit(
        batch,
        mark,
        changes.map((change) => (change.change === "insert" ? change : { ...change, expect: [], old: [] })),
      );
  }),
  backendMutant(
    "a commit with an unknown outcome is treated as failed",
    ["flows"],
    (backend) => {
      const acknowledged = new Map<string, number>();
      changeConnections(backend, (connection) => {
        const commit = connection.commit.bind(connection);
        connection.commit = async (batch, mark, changes, check) => {
          const outcome = await commit(batch, mark, changes, check);
          if (outcome === "committed") acknowledged.set(connection.writer, batch);
          return outcome;
        };
      });
      const lastBatch = backend.lastBatch.bind(backend);
      backend.lastBatch = async (connection, writer) => {
        await lastBatch(connection, writer);
        return acknowledged.get(writer) ?? 0;
      };
    },
    ONLY_UNKNOWN,
  ),
  backendMutant("a commit with an unknown outcome is treated as committed", ["programs"], (backend) => {
    backend.lastBatch = () => Promise.resolve(Number.MAX_SAFE_INTEGER);
  }),
  backendMutant(
    "an abandoned commit may still be applied",
    ["flows"],
    (backend) => {
      backend.lastBatch = async (connection, writer) => {
        const [rows] = await connection.read([
          { kind: "lookup", table: "writers", columns: ["writer"], keys: [[writer]], lock: "none" },
        ]);
        return (rows?.[0]?.["batch"] as number | undefined) ?? 0;
      };
    },
    ONLY_UNKNOWN,
  ),
  rrMutant(
    "plain reads see the snapshot before the locks were granted (REPEATABLE READ)",
    ["flows", "collect"],
    (connection) => {
      const ask = connection.query.bind(connection);
      connection.query = async (queries) => (await ask([ANYTHING, ...queries])).slice(1);
    },
  ),
  ...ROLLBACK_MUTANTS,
];
