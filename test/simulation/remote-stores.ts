// Remote stores in the simulation: each process has its own store and connections to one simulated database.

import type { Database, Store } from "../../src/kernel/index.ts";
import { ConnectionError } from "../../src/stores/remote/backend.ts";
import { openRemoteStore } from "../../src/stores/remote/remote-store.ts";
import type { RemoteStoreOptions } from "../../src/stores/remote/session.ts";
import { SimServer, type SimBackend, type SimUserHandle, type SimWire } from "./store/sim-backend.ts";
import type { Isolation } from "./store/sim-database.ts";
import type { RandomSource } from "../replay/random-source.ts";
import { processStore, type Passage } from "./process-store.ts";
import type { ProcessInstance, OpenedStore } from "./process.ts";
import { crashPoint, latency, latencyMs, type SimStores, type StoresHost } from "./stores.ts";

/** The database kind for `ctx.tx`. */
const simulated: Database<SimUserHandle, false> = { "~kind": "simulated" };

const LATE_MS = 3_000;
/** The maximum replication lag of a standby. */
const BEHIND_MS = [0, 50, 500, 3_000];
/** The maximum extra age of a backup. */
const OLDER_MS = 4_000;

export interface RemoteHost extends StoresHost {
  readonly isolation: Isolation;
  readonly chance: RandomSource;
  /** A mutant: the same database with one broken guarantee. */
  readonly wrapBackend?: ((backend: SimBackend, instance: ProcessInstance) => SimBackend) | undefined;
}

export async function openRemoteStores(host: RemoteHost): Promise<SimStores> {
  const { loop, random, chance } = host;
  const server = new SimServer(host.isolation, () => loop.clock.now());
  const history = host.faults.intensity.has("rollback")
    ? server.database.keepHistory(() => loop.clock.monotonic())
    : undefined;
  const isOptimistic = chance.happens(0.8);
  const optionsOf = (parts: Pick<RemoteStoreOptions, "clock" | "timers" | "random">): RemoteStoreOptions => ({
    ...parts,
    durability: "full",
    time: "server",
    optimistic: isOptimistic,
    // A second batch whenever there is a write for it.
    overlapFrom: 1,
  });
  const openCalm = async (): Promise<Store> => {
    const backend = server.backend();
    // The checks must not affect the simulation.
    server.backends.delete(backend);
    return openRemoteStore(backend, optionsOf({ clock: loop.clock, timers: loop.timers, random }));
  };
  const stores: SimStores = {
    kind: "remote",
    calm: await openCalm(),
    database: simulated,
    async open(instance: ProcessInstance): Promise<OpenedStore> {
      const backend = server.backend(wireOf(host, instance));
      // A process killed while it opens must leave nothing.
      instance.loop.onDeath(() => backend.kill());
      const used = host.wrapBackend?.(backend, instance) ?? backend;
      const store = await openRemoteStore(used, optionsOf({ ...instance.loop, random: instance.random }));
      const passage: Passage = {
        before: () => {},
        after: () => {},
        pollChanges: () => store.pollChanges(),
        close: () => store.close(),
      };
      const wrapped = host.wrap?.(store, instance) ?? store;
      return { store: processStore(wrapped, instance, passage, host.witness), kill: () => backend.kill() };
    },
    rollBack(draws, leastMs) {
      if (history === undefined) return undefined;
      const now = loop.clock.monotonic();
      const isFailover = draws.happens(0.5);
      const ageMs = isFailover ? draws.unit() * draws.pick(BEHIND_MS) : leastMs + draws.unit() * OLDER_MS;
      // The store did not exist yet.
      if (ageMs >= now) return undefined;
      const lost = history.since(now - ageMs);
      if (isFailover) server.failOver(lost);
      else server.restore(lost);
      return `${isFailover ? "failover" : "restore"} ${Math.round(ageMs)} ms back, ${lost} commits lost`;
    },
    async reopen() {
      stores.calm = await openCalm();
    },
    close: () => stores.calm.close(),
    discard: () => {},
  };
  return stores;
}

/** The network between a process and the database. Work in the database takes time also while the process is paused. */
function wireOf(host: RemoteHost, instance: ProcessInstance): SimWire {
  const { faults, loop } = host;
  const lost = (where: string): ConnectionError => {
    instance.loop.log(`connection lost ${where}`);
    return new ConnectionError("lost");
  };
  return {
    async pass(call, place) {
      const isWrite = call === "commit";
      if (place === "before" || place === "after") {
        if (isWrite) await crashPoint(host, instance, `${place} ${call}`);
        await latency(host, instance);
        if (faults.happens("cut", 0.01)) throw lost(`${place} ${call}`);
        return;
      }
      if (isWrite && place !== "statement" && faults.happens("kill", 0.01)) instance.die(`while ${call}: ${place}`);
      if (call === "query" && faults.happens("abort", 0.01)) throw new ConnectionError("retry");
      const ms = latencyMs(host);
      if (ms > 0) await loop.sleep(ms);
    },
    fate() {
      if (faults.happens("unknown", 0.04)) {
        const fate = faults.draw("unknown").pick(["lost-before", "lost-after", "late"] as const);
        instance.loop.log(`commit: ${fate}`);
        return fate;
      }
      return faults.happens("abort", 0.04) ? "retry" : "ok";
    },
    late: () => loop.sleep(faults.draw("unknown").unit() * LATE_MS),
    finishesAlone: () => host.chance.happens(0.5),
    delivers: () => !faults.happens("cut", 0.2),
  };
}
