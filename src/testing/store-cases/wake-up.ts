// Wake-up: wherever a message arrives relative to the end of a turn, a worker claims the turn afterwards and reads it.

import assert from "node:assert/strict";
import type { Store } from "../../kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  type HeldTurn,
  message,
  registerWorker,
  send,
  startHeld,
  takeTurn,
  turnWrite,
  WAITS,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

type Play = (store: Store, held: HeldTurn) => Promise<void>;

const moments: readonly [when: string, play: Play][] = [
  [
    "while the turn is held",
    async (store, held) => {
      await send(store, held.id);
      await commitTurn(store, held, { entries: [WAITS], then: "release" });
    },
  ],
  [
    "while the turn is held, before a commit that holds on",
    async (store, held) => {
      await send(store, held.id);
      const on = await commitTurn(store, held, { entries: [WAITS] });
      await commitTurn(store, on, { then: "release" });
    },
  ],
  [
    "in the batch of the releasing commit, before it",
    async (store, held) => {
      const release = turnWrite(store, held, { entries: [WAITS], then: "release" });
      const [, outcome] = await store.write([message(held.id), release]);
      assert.deepEqual(outcome, { status: "committed", more: true, children: [] });
    },
  ],
  [
    "in the batch of the releasing commit, after it",
    async (store, held) => {
      await store.write([turnWrite(store, held, { entries: [WAITS], then: "release" }), message(held.id)]);
    },
  ],
  [
    "while the releasing commit is in flight",
    async (store, held) => {
      const release = store.write([turnWrite(store, held, { entries: [WAITS], then: "release" })]);
      await Promise.all([release, send(store, held.id)]);
    },
  ],
  [
    "just before the releasing commit is sent",
    async (store, held) => {
      const sent = send(store, held.id);
      await Promise.all([sent, store.write([turnWrite(store, held, { entries: [WAITS], then: "release" })])]);
    },
  ],
  [
    "after the turn was given back",
    async (store, held) => {
      await commitTurn(store, held, { entries: [WAITS], then: "release" });
      await send(store, held.id);
    },
  ],
];

export const wakeUpCases: readonly StoreCase[] = moments.map(([when, play]) =>
  storeCase(`a message that arrives ${when} makes the turn due`, async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await play(store, held);
    const taken = await takeTurn(store, worker);
    assert.deepEqual(
      taken.inbox.map((row) => row.arrival),
      [1],
    );
    await commitTurn(store, taken, { ...COMPLETES, read: 1 });
  }),
);
