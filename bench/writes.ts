// writes: the CPU time of single kinds of writes, in lists of 200, on the store itself: what the rules and the database cost
// without an engine. `cpuUsPerWrite` compares two versions of a rule, or an override with its generic form.

import { performance } from "node:perf_hooks";
import type { TurnWrite, Write } from "../src/kernel/index.ts";
import {
  heldAfter,
  message,
  newToken,
  newTokens,
  startWrite,
  turnWrite,
  type HeldTurn,
  type TurnParts,
} from "../src/testing/store-cases/store-actions.ts";
import { storeOf, type AnyStore } from "./open-store.ts";
import { scaled, type Workload } from "./workload.ts";

const LIST = 200;

/** Lists of writes are made one by one: each depends on what the last one left. */
class Writes {
  readonly store: AnyStore;
  readonly worker: number;
  count = 0;
  cpuUs = 0;

  constructor(store: AnyStore, worker: number) {
    this.store = store;
    this.worker = worker;
  }

  /** Only these writes are measured. */
  async measure(writes: readonly Write[], count = writes.length): Promise<void> {
    const before = process.cpuUsage();
    await this.store.write(writes);
    const { user, system } = process.cpuUsage(before);
    this.cpuUs += user + system;
    this.count += count;
  }

  starts(
    isHeld: boolean,
  ): readonly (ReturnType<typeof startWrite> & { readonly claim?: { readonly token: string } })[] {
    return Array.from({ length: LIST }, () => {
      const start = startWrite(`bench ${newToken()}`);
      return isHeld ? { ...start, claim: { worker: this.worker, token: newToken() } } : start;
    });
  }

  async held(): Promise<HeldTurn[]> {
    const starts = this.starts(true);
    const outcomes = await this.store.write(starts);
    return outcomes.map((outcome, at) => {
      if (outcome.status !== "started") throw new Error(`A start was ${outcome.status}.`);
      const { run, id, head, chain } = outcome.record;
      return { run, id, head, chain, token: starts[at]?.claim?.token ?? "", read: 0, inbox: [] };
    });
  }

  /** One turn of each run; `held` is updated. */
  turns(held: HeldTurn[], parts: (turn: HeldTurn, at: number) => TurnParts): readonly TurnWrite[] {
    return held.map((turn, at) => {
      const write = turnWrite(this.store, turn, parts(turn, at));
      held[at] = heldAfter(turn, write);
      return write;
    });
  }
}

type Measure = (writes: Writes, rounds: number) => Promise<void>;

const VARIANTS: Readonly<Record<string, Measure>> = {
  async start(writes, rounds) {
    for (let round = 0; round < rounds; round += 1) await writes.measure(writes.starts(true));
  },
  async turn(writes, rounds) {
    const held = await writes.held();
    for (let round = 0; round < rounds; round += 1)
      await writes.measure(writes.turns(held, () => ({ entries: [["OperationCompleted", "Operation(0)"]] })));
  },
  async task(writes, rounds) {
    const held = await writes.held();
    for (let round = 0; round < rounds; round += 1) {
      const name = `Task(${round})`;
      const claims = held.map(() => ({ worker: writes.worker, token: newToken() }));
      const items = (at: number) => [{ ...TASK, item: name, seq: 2, claim: claims[at]! }];
      await writes.measure(writes.turns(held, (_, at) => ({ entries: [["TaskScheduled", name]], items: items(at) })));
      await writes.measure(
        writes.turns(held, (_, at) => ({
          entries: [["TaskCompleted", name]],
          finished: [{ item: name, token: claims[at]!.token }],
        })),
      );
    }
  },
  async message(writes, rounds) {
    const held = await writes.held();
    for (let round = 0; round < rounds; round += 1) await writes.measure(held.map(({ id }) => message(id)));
  },
  async end(writes, rounds) {
    for (let round = 0; round < rounds; round += 1) {
      const held = await writes.held();
      await writes.measure(writes.turns(held, () => ({ entries: [["RunCompleted", ""]], then: "completed" })));
    }
  },
  async "claim-turns"(writes, rounds) {
    const definitions = [{ name: "checkout", version: 1 }];
    for (let round = 0; round < rounds; round += 1) {
      await writes.store.write(writes.starts(false));
      const tokens = newTokens(LIST);
      await writes.measure([{ write: "claim-turns", worker: writes.worker, tokens, definitions }], LIST);
    }
  },
  async "claim-items"(writes, rounds) {
    const held = await writes.held();
    for (let round = 0; round < rounds; round += 1) {
      const items = [{ ...TASK, item: `Task(${round})`, seq: 1 }];
      await writes.store.write(writes.turns(held, () => ({ entries: [["TaskScheduled", items[0]!.item]], items })));
      const tokens = newTokens(LIST);
      await writes.measure([{ write: "claim-items", worker: writes.worker, tokens, names: [TASK.name] }], LIST);
    }
  },
};

const TASK = { kind: "task", name: "charge", priority: 0 } as const;

export const writesWorkload: Workload = {
  name: "writes",
  variants: Object.keys(VARIANTS),
  warmUp: 0.25,
  hasNoRate: true,
  withoutWorker: true,
  async run(rig, plan) {
    const measure = VARIANTS[plan.variant];
    if (measure === undefined) throw new Error(`Expected one of ${Object.keys(VARIANTS).join(", ")}.`);
    const store = storeOf(rig.engine);
    const writes = new Writes(store, await store.registerWorker("bench", 3_600_000));
    const startedAt = performance.now();
    await measure(writes, scaled(60, plan));
    const elapsedMs = performance.now() - startedAt;
    await store.releaseWorker(writes.worker);
    const extra = { cpuUsPerWrite: writes.cpuUs / writes.count };
    return { runs: 0, steps: writes.count, elapsedMs, latenciesMs: [], extra };
  },
};
