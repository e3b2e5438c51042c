import type { ClaimedItem, ClaimedTurn, ClaimItemsOutcome, Outcome } from "../../../src/kernel/index.ts";
import { answering, changed, methods, rewriting, type Mutant } from "./mutant.ts";

type Claimed = readonly (ClaimedTurn | ClaimedItem)[];

function claimedIn(outcome: Outcome): Claimed {
  return Array.isArray(outcome) ? (outcome as Claimed) : (outcome as ClaimItemsOutcome).items;
}

/** The outcome of a claim with other turns or items in it. */
function withClaimed(outcome: Outcome, change: (claimed: Claimed) => Claimed): Outcome {
  const claimed = change(claimedIn(outcome));
  return (Array.isArray(outcome) ? claimed : { ...(outcome as ClaimItemsOutcome), items: claimed }) as Outcome;
}

export const leasesMutants: readonly Mutant[] = [
  methods("a worker takes over its own work", (store) => ({ reap: () => store.reap(-1) })),
  methods("expired workers are never taken over", () => ({ reap: async () => ({ workers: 0, turns: 0, items: 0 }) })),
  methods("a lease that expires now is still held", (store) => ({
    registerWorker: (name: string, leaseMs: number) => store.registerWorker(name, leaseMs + 1),
  })),
  methods("a lease is lost a millisecond early", (store) => ({
    registerWorker: (name: string, leaseMs: number) => store.registerWorker(name, leaseMs - 1),
  })),
  methods("renewing always succeeds", (store) => ({
    renewLease: async (worker: number, leaseMs: number) => (await store.renewLease(worker, leaseMs), true),
  })),
  methods("renewing does not extend the lease", () => ({ renewLease: async () => true })),
  methods("a worker's profile and activity are not stored", (store) => ({
    registerWorker: (name: string, leaseMs: number) => store.registerWorker(name, leaseMs),
  })),
  methods("a heartbeat without an activity deletes the one before", (store) => ({
    renewLease: (worker: number, leaseMs: number, doing = "{}") => store.renewLease(worker, leaseMs, doing),
  })),
  methods("only workers that are alive are listed", (store) => ({
    listWorkers: async () => (await store.listWorkers()).filter(({ until }) => until > store.now()),
  })),
  methods("readHeld returns nothing", () => ({
    readHeld: async () => ({ turns: [], items: [], messages: [] }),
  })),
  methods("a released worker keeps its leases", () => ({ releaseWorker: async () => undefined })),
  methods("a release counts as a takeover", (store) => ({
    async releaseWorker(worker: number) {
      await store.renewLease(worker, 0);
      await store.reap(-1);
    },
  })),
  {
    name: "worker numbers are used again",
    wrap(store) {
      let last: number | undefined;
      return changed(store, {
        registerWorker: async (name: string, leaseMs: number) => (last ??= await store.registerWorker(name, leaseMs)),
      });
    },
  },
  methods("a run is never blocked", (store) => ({
    async reap(self: number) {
      const reaped = await store.reap(self);
      for (const record of await store.listRuns({ limit: 100, statuses: ["blocked"] }))
        await store.write([{ write: "resume", id: record.id }]);
      return reaped;
    },
  })),
  answering("no work becomes a suspect", (outcome, write) =>
    write.write === "claim-turns" || write.write === "claim-items"
      ? withClaimed(outcome, (claimed) => claimed.map((each) => ({ ...each, suspicion: 0 })))
      : outcome,
  ),
  // Claims again with other tokens and returns both.
  answering("a group of suspects is claimed together with other work", async (outcome, write, store) => {
    if (write.write !== "claim-turns" && write.write !== "claim-items") return outcome;
    if (!claimedIn(outcome).some(({ suspicion }) => suspicion > 0)) return outcome;
    const [more] = await store.write([{ ...write, tokens: write.tokens.map((token) => `more ${token}`) }]);
    return withClaimed(outcome, (claimed) => [...claimed, ...claimedIn(more!)]);
  }),
  // Each with another worker number, which holds nothing.
  rewriting("a worker that holds an isolated suspect claims others", async (write, store) =>
    write.write === "claim-turns" || write.write === "claim-items"
      ? { ...write, worker: await store.registerWorker("another", 1e9) }
      : write,
  ),
  // Does not claim the rest with a second claim.
  rewriting("a claim takes one item at most", (write) =>
    write.write === "claim-turns" || write.write === "claim-items"
      ? { ...write, tokens: write.tokens.slice(0, 1) }
      : write,
  ),
  methods("a run is blocked at the first takeover", (store) => ({
    async reap(self: number) {
      const reaped = await store.reap(self);
      const worker = await store.registerWorker("mutant", 1e9);
      const due = await store.listRuns({ limit: 100, statuses: ["queued"] });
      const definitions = due.map(({ definition, version }) => ({ name: definition, version }));
      const tokens = due.map((record) => `mutant ${record.run} ${worker}`);
      if (reaped.turns > 0) {
        const [claimed] = await store.write([{ write: "claim-turns", worker, tokens, definitions }]);
        for (const { record, token } of claimed)
          await store.write([{ write: "stop", run: record.run, token, status: "blocked", evidence: "{}" }]);
      }
      await store.releaseWorker(worker);
      return reaped;
    },
  })),
  methods("the holder of a run is the wrong worker", (store) => ({
    async readHolders(runs: readonly number[]) {
      const [worker] = await store.listWorkers();
      return (await store.readHolders(runs)).map((holder) => ({ ...holder, worker: worker?.worker }));
    },
  })),
  methods("the last commit of a run is its start", (store) => ({
    readHolders: async (runs: readonly number[]) =>
      Promise.all(
        (await store.readHolders(runs)).map(async (holder) => ({
          ...holder,
          committedAt: (await store.readJournal(holder.run, 0, 1))[0]?.at,
        })),
      ),
  })),
  methods("a new store has a history", (store) => ({
    readHistory: async () => [{ at: store.now(), kind: "restored", detail: "" }],
  })),
];
