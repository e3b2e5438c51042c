// Completion batches: completions keep rows in memory within a transaction (flow-rows.R1). The same writes, in any batches, must have
// the same outcomes and leave the same tables.

import { DatabaseSync } from "node:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { drawInt, systemRandom, systemTimers } from "../../src/base/index.ts";
import type { NodeArrival, Outcome, Write } from "../../src/kernel/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";
import {
  arrival,
  completeWrite,
  done,
  endParts,
  FLOW,
  NODE,
  RUN_COMPLETED,
  spreadOf,
  type CompleteParts,
} from "../../src/testing/store-cases/flow-actions.ts";
import { message, newRun } from "../../src/testing/store-cases/store-actions.ts";

const NODES = ["a", "b", "c", "d", "e", "saved", "saved[0]", "saved[1]", "saved[2]", "saved[3]"];
const RUNS = 3;
/** The worker number from random bytes that are all zero. */
const WORKER = 2 ** 48;

/** Every node is leased by the commit that queues it, with a token derived from its name, so that writes can be generated in advance. */
function tokenOf(run: number, node: string): string {
  return `${run} ${node}`;
}

function draws(seed: bigint) {
  let index = 0;
  return (max: number): number => drawInt(seed, "batches", index++, max);
}

/** Many are stale, some overflow. */
function randomWrites(seed: bigint): readonly Write[] {
  const draw = draws(seed);
  const leased = (run: number, node: string) => ({ ...NODE, claim: { worker: WORKER, token: tokenOf(run, node) } });
  const arrivalsOf = (run: number, from: string): readonly NodeArrival[] =>
    Array.from({ length: draw(3) }, () => {
      const target = NODES[draw(5)] as string;
      const required = draw(40) === 0 ? 2 : 1 + (target.charCodeAt(0) % 3);
      return arrival(target, from, required, { node: leased(run, target), cause: draw(2) === 0 ? 0 : undefined });
    });
  const nodeWrite = (run: number): Write => {
    const node = NODES[draw(NODES.length)] as string;
    const item = /\[(\d)\]$/.exec(node);
    const parts: CompleteParts =
      item === null
        ? { entries: [done(node)], arrivals: arrivalsOf(run, node) }
        : {
            entries: [done(node)],
            arrivals: [arrival("saved", "saved[]", undefined, { index: Number(item[1]), node: leased(run, "saved") })],
            advances: [{ barrier: "saved", node: leased(run, `saved[${draw(4)}]`) }],
          };
    const fence = { item: node, token: tokenOf(run, node) };
    if (draw(30) === 0) return completeWrite(run, fence, endParts("completed", [done(node), RUN_COMPLETED]));
    if (draw(12) === 0 && node !== "saved")
      return completeWrite(run, fence, { ...spreadOf(4, 2, 2), arrivals: arrivalsOf(run, node) });
    return completeWrite(run, fence, parts);
  };
  const starts = Array.from({ length: RUNS }, (_, n): Write[] => {
    const run = n + 1;
    const claim = { worker: WORKER, token: tokenOf(run, "turn") };
    const claims = ["saved[0]", "saved[1]"].map((node) => ({ worker: WORKER, token: tokenOf(run, node) }));
    const arrivals = ["a", "b"].map((node) =>
      arrival(node, "input", 1 + (node.charCodeAt(0) % 3), { node: leased(run, node), cause: undefined }),
    );
    return [
      { write: "start", run: newRun(`import-${run}`, FLOW), claim },
      completeWrite(run, { turn: claim.token, read: 0 }, { ...spreadOf(4, 2, 2, claims), arrivals }),
    ];
  });
  const others = Array.from({ length: 120 }, (): Write => {
    const run = 1 + draw(RUNS);
    const id = `import-${run}`;
    switch (draw(14)) {
      case 0:
        return message(id);
      case 1:
        return { write: draw(2) === 0 ? "pause" : "resume", id };
      case 2: {
        const names = [NODE.name];
        return { write: "claim-items", worker: WORKER, tokens: [tokenOf(run, "c")], names };
      }
      case 3: {
        const fence = { turn: tokenOf(run, "later"), read: 0 };
        return completeWrite(run, fence, { arrivals: arrivalsOf(run, "turn") });
      }
      case 4: {
        const definitions = [{ name: "import", version: 1 }];
        return { write: "claim-turns", worker: WORKER, tokens: [tokenOf(run, "later")], definitions };
      }
      default:
        return nodeWrite(run);
    }
  });
  return [...starts.flat(), ...others];
}

interface Left {
  readonly outcomes: readonly Outcome[];
  readonly tables: unknown;
  readonly problems: readonly unknown[];
}

async function applied(writes: readonly Write[], batchSize: () => number): Promise<Left> {
  const folder = mkdtempSync(join(tmpdir(), "reprise-batches-"));
  const path = join(folder, "store.db");
  const clock = { now: () => 1_000_000, monotonic: () => 0 };
  const store = await openSqliteStore({
    path,
    durability: "relaxed",
    clock,
    timers: systemTimers,
    random: { ...systemRandom, bytes: (count) => new Uint8Array(count) },
  });
  try {
    await store.registerWorker("tester", 3_600_000);
    const outcomes: Outcome[] = [];
    for (let at = 0; at < writes.length;) {
      const batch = writes.slice(at, at + batchSize());
      outcomes.push(...(await store.write(batch)));
      at += batch.length;
    }
    const problems = (await store.check()).filter(({ invariant }) => !isOfTheStory(invariant));
    const db = new DatabaseSync(path);
    const tables = ["runs", "journal", "queue", "inbox", "arrivals", "readiness"].map((table) =>
      db.prepare(`select * from ${table} order by 1, 2, 3`).all(),
    );
    db.close();
    return { outcomes, tables, problems };
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Problems that generated writes cause: nodes that end twice, runs that nothing wakes, and arrivals without an entry. */
function isOfTheStory(invariant: string): boolean {
  return !/^I(2|7|8|14|17|18|23) /.test(invariant);
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))(
  "the same writes have the same outcomes and leave the same tables, one by one and in batches: %i",
  async (seed) => {
    const writes = randomWrites(BigInt(seed));
    const draw = draws(BigInt(seed + 1_000));
    const alone = await applied(writes, () => 1);
    const together = await applied(writes, () => 1 + draw(40));
    expect(together).toEqual(alone);
    expect(alone.problems).toEqual([]);
    expect(alone.outcomes.filter((one) => "status" in one && one.status === "committed").length).toBeGreaterThan(RUNS);
  },
);
