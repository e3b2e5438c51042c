import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";
import { commitTurn, COMPLETES, registerWorker, startHeld, type HeldTurn } from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** A text that repeats nothing, not even itself. */
function words(seed: number, length: number): string {
  let text = "";
  for (let at = 0; text.length < length; at += 1) text += `${(seed * 7_919 + at * 104_729) % 999_983} ä "${at}" `;
  return text.slice(0, length);
}

/** The requests of an agent: each has all messages of the one before. */
function requests(turns: number, length: number): readonly string[] {
  const messages = Array.from({ length: turns }, (_, turn) => ({ role: "user", content: words(turn, length) }));
  return messages.map((_, turn) => JSON.stringify({ messages: messages.slice(0, turn + 1), model: "m", turn }));
}

async function append(store: Store, held: HeldTurn, payloads: readonly string[]): Promise<HeldTurn> {
  let last = held;
  for (const data of payloads)
    last = await commitTurn(store, last, { entries: [["OperationCompleted", `Operation(${last.head})`, data]] });
  return last;
}

async function expectJournal(store: Store, { run }: HeldTurn, payloads: readonly string[]): Promise<void> {
  const entries = (await store.readJournal(run, 1)).map(({ data }) => data);
  // Not deepEqual: a difference would print megabytes.
  assert.equal(entries.length, payloads.length);
  for (const [index, data] of payloads.entries()) assert.ok(entries[index] === data, `entry ${index + 2} differs`);
}

export const contentCases: readonly StoreCase[] = [
  storeCase("payloads that repeat long texts are returned byte for byte, over every connection", async (store, t) => {
    const worker = await registerWorker(store);
    const payloads = requests(30, 1_500);
    let held = await append(store, await startHeld(store, worker, "agent"), payloads.slice(0, 10));
    // A process that did not write, and has not read, the first ones.
    const other = await t.openAgain();
    held = await append(other, held, payloads.slice(10, 20));
    await expectJournal(other, held, payloads.slice(0, 20));
    held = await append(other, held, payloads.slice(20));
    await expectJournal(store, held, payloads);
    await expectJournal(await t.openAgain(), held, payloads);
    await commitTurn(store, held, COMPLETES);
  }),

  storeCase("payloads of several sizes and runs share no text wrongly", async (store) => {
    const worker = await registerWorker(store);
    const shared = words(1, 70_000);
    const payloads = [0, 1, 2].map((n) => [
      JSON.stringify([shared, n]),
      JSON.stringify({ list: Array.from({ length: 3_000 }, (_, at) => ({ at, n })), shared }),
      JSON.stringify(words(n, 5_000)),
      JSON.stringify([words(n, 5_000), words(n, 5_000), n]),
      JSON.stringify({ again: [shared, words(n, 900_000)], shared }),
    ]);
    const runs: HeldTurn[] = [];
    for (const [n, some] of payloads.entries())
      runs.push(await append(store, await startHeld(store, worker, `run-${n}`), some));
    for (const [n, some] of payloads.entries()) await expectJournal(store, runs[n]!, some);
  }),

  storeCase("a backup has the texts that payloads share, and a rekey keeps them", async (store, t) => {
    const worker = await registerWorker(store);
    const payloads = [...requests(12, 2_000), JSON.stringify(words(7, 200_000))];
    const held = await append(store, await startHeld(store, worker, "agent"), payloads);
    try {
      assert.equal((await store.rekey()).unreadable, 0);
    } catch (error) {
      // The store has no codec.
      assert.equal((error as { code?: unknown }).code, "BAD_OPTIONS");
    }
    await expectJournal(store, held, payloads);
    const path = t.backupPath();
    await store.backup(path);
    await expectJournal(await t.openBackup(path), held, payloads);
  }),

  storeCase("deleting a run takes no text from another run, and leaves none behind", async (store, t) => {
    const worker = await registerWorker(store);
    const payloads = [...requests(8, 2_000), JSON.stringify(words(9, 100_000))];
    const gone = await append(store, await startHeld(store, worker, "gone"), payloads);
    const kept = await append(store, await startHeld(store, worker, "kept"), payloads);
    await commitTurn(store, gone, COMPLETES);
    t.clock.advance(1_000);
    assert.deepEqual(await store.prune(store.now()), { runs: 1 });
    await expectJournal(store, kept, payloads);
    // `check` after the case reports texts without a run.
  }),
];
