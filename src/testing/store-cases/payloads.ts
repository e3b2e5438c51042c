import assert from "node:assert/strict";
import {
  commitTurn,
  inboxData,
  getRun,
  endItemWrite,
  registerWorker,
  resolved,
  taskParts,
  send,
  startHeld,
  startRun,
  takeItem,
  type EntryParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** Texts that some databases, drivers or collations change. */
const PAYLOADS: readonly (readonly [what: string, data: string])[] = [
  ["an empty object", "{}"],
  ["nothing", ""],
  ["a quoted empty text", '""'],
  ["unusual spacing and key order", '{ "b" : 1.0e2,\n"a":-0 , "b": 2 }'],
  ["umlauts, composed and decomposed", '"ä a\u0308 ß ﬁ"'],
  ["line separators", '"\u2028\u2029\u0085"'],
  ["emoji with joiners", '"👩‍👩‍👧‍👦 🏴󠁧󠁢󠁥󠁮󠁧󠁿 𝒳"'],
  ["right to left and a byte order mark", '"\ufeffשלום\u202e"'],
  ["control characters and NUL", '"\u0000\u0001\u007f"'],
  ["quotes and backslashes", `"' \\" \\\\ \\u0000 ; -- $1 ? :a"`],
  ["trailing spaces", '"x"   '],
  ["the noncharacters at the end of planes", '"\uffff\u{10ffff}"'],
  ["a number beyond a double", "123456789012345678901234567890.10"],
];

/** Ids that some collations treat as equal. */
const LOOKALIKES = [
  "run-A",
  "run-a",
  "run-a ",
  " run-a",
  "run-á",
  "run-a\u0301",
  "run-ａ",
  "RUN-A",
  "run-ß",
  "run-ss",
  "🏃",
  "1",
  "01",
];

export const payloadCases: readonly StoreCase[] = [
  ...PAYLOADS.map(([what, data]) =>
    storeCase(`a payload of ${what} is returned byte for byte`, async (store) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1", { started: data });
      assert.equal((await store.readJournal(held.run, 0))[0]?.data, data);
      const tasks = taskParts(held, 1);
      const entries: readonly EntryParts[] = [["TaskScheduled", "Task(0)", data]];
      await commitTurn(store, held, { ...tasks, entries });
      assert.equal((await store.readJournal(held.run, 1))[0]?.data, data);

      const first = await takeItem(store, worker);
      assert.equal(first.data, data);
      await store.write([
        { write: "return-item", run: first.run, item: first.item, token: first.token, attempt: 1, failures: data },
      ]);
      const second = await takeItem(store, worker);
      assert.equal(second.failures, data);

      await send(store, "order-1", resolved(data));
      await store.write([endItemWrite(second, data)]);
      assert.deepEqual(await inboxData(store, held.run), [data, data]);

      const busy = { run: held.run, token: held.token };
      await store.write([{ write: "stop", ...busy, status: "blocked", evidence: data }]);
      assert.equal((await getRun(store, "order-1")).evidence, data);
    }),
  ),

  storeCase("a payload of a megabyte is returned byte for byte", async (store) => {
    const worker = await registerWorker(store);
    const big = JSON.stringify({ text: "ä€😀x".repeat(100_000) });
    assert.ok(Buffer.byteLength(big) >= 1_000_000);
    const held = await startHeld(store, worker, "order-1", { started: big });
    await commitTurn(store, held, { entries: [["OperationCompleted", "Operation(0)", big]] });
    await send(store, "order-1", resolved(big));
    const journal = await store.readJournal(held.run, 0);
    // Not deepEqual: a difference would print two megabytes.
    assert.ok(journal.every((entry) => entry.data === big));
    assert.ok((await inboxData(store, held.run)).every((data) => data === big));
  }),

  storeCase("an entry keeps the duration of its call, and entries without a call have none", async (store) => {
    const held = await startHeld(store, await registerWorker(store), "order-1");
    const entries: readonly EntryParts[] = [
      ["OperationCompleted", "Operation(0)", "{}", 250],
      ["OperationFailed", "Operation(1)", "{}", 0],
      ["OperationCompleted", "Operation(2)", "{}", 86_400_000_000],
      ["PromiseCreated", "Promise(0)", "{}"],
    ];
    await commitTurn(store, held, { entries });
    const journal = await store.readJournal(held.run, 0);
    assert.deepEqual(
      journal.map(({ tookMs }) => tookMs),
      [undefined, 250, 0, 86_400_000_000, undefined],
    );
  }),

  storeCase("similar ids are different runs", async (store) => {
    const numbers = new Map<string, number>();
    for (const id of LOOKALIKES) numbers.set(id, (await startRun(store, id)).run);
    assert.equal(new Set(numbers.values()).size, LOOKALIKES.length);
    for (const [id, run] of numbers) {
      const record = await getRun(store, id);
      assert.deepEqual([record.id, record.run], [id, run]);
    }
    await send(store, "run-a");
    for (const id of LOOKALIKES) assert.equal((await getRun(store, id)).arrivals, id === "run-a" ? 1 : 0);
  }),

  storeCase("similar targets are different targets", async (store) => {
    await startRun(store, "order-1");
    const writes = ["go", "Go", "go ", "gó"].map((target) => ({
      write: "message" as const,
      to: "order-1",
      arrival: resolved("{}", target),
      once: true,
    }));
    const statuses = (await store.write(writes)).map((outcome) => outcome.status);
    assert.deepEqual(statuses, Array(4).fill("committed"));
  }),
];
