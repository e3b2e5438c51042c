import assert from "node:assert/strict";
import type { ClaimMessagesOutcome, ClaimedMessage, MessageFence, Store } from "../../kernel/index.ts";
import { assertNothingWritten } from "./store-dump.ts";
import {
  commitTurn,
  DONE,
  LEASE_MS,
  newToken,
  newTokens,
  registerWorker,
  startHeld,
  turnWrite,
  WAITS,
  type EntryParts,
  type HeldTurn,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

/** Messages `Message(first)`, … to the named destinations: one entry and one row each. */
function sends(
  held: HeldTurn,
  destinations: readonly string[],
  first = 0,
): Required<Pick<TurnParts, "entries" | "outgoing">> {
  return {
    entries: destinations.map((_, n): EntryParts => {
      const number = first + n;
      return ["MessageSent", `Message(${number})`, JSON.stringify({ payload: number })];
    }),
    outgoing: destinations.map((destination, n) => ({ destination, seq: held.head + 1 + n })),
  };
}

async function claim(
  store: Store,
  worker: number,
  destinations: readonly string[] = ["mail"],
  count = 100,
): Promise<ClaimMessagesOutcome> {
  const [outcome] = await store.write([
    { write: "claim-messages", worker, tokens: newTokens(count), destinations },
  ] as const);
  return outcome;
}

/** Claims the one message that is due. */
async function take(store: Store, worker: number, destinations?: readonly string[]): Promise<ClaimedMessage> {
  const { messages } = await claim(store, worker, destinations);
  assert.equal(messages.length, 1, `one message should be next, not ${messages.length}`);
  return messages[0] as ClaimedMessage;
}

function fenceOf({ firstRun: line, run, seq, token }: ClaimedMessage): MessageFence {
  return { firstRun: line, run, seq, token };
}

async function delivered(store: Store, message: ClaimedMessage): Promise<boolean> {
  const [outcome] = await store.write([{ write: "message-delivered", ...fenceOf(message) }] as const);
  assert.equal(outcome.status, "committed");
  return outcome.status === "committed" && outcome.more;
}

/** Sends a message, waits, and releases the turn. */
function waitsAfter(held: HeldTurn): TurnParts {
  const { entries, outgoing: sent } = sends(held, ["mail"]);
  return { entries: [...entries, WAITS], outgoing: sent, then: "release" };
}

const ENDS = { entries: [DONE], then: "completed" } as const;

export const outboxCases: readonly StoreCase[] = [
  storeCase("an outgoing message is claimed with everything that its delivery needs", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, sends(held, ["mail"]));
    const { token, ...message } = await take(store, worker);
    assert.deepEqual(message, {
      firstRun: held.run,
      run: held.run,
      seq: 2,
      destination: "mail",
      attempt: 0,
      runId: "order-1",
      generation: 0,
      command: "Message(0)",
      data: '{"payload":0}',
    });
    assert.ok(token.length > 0);
    assert.deepEqual(await claim(store, worker), { messages: [], nextAt: undefined });
  }),

  storeCase("the outgoing messages of a run are claimed one after the other, across destinations", async (store) => {
    const worker = await registerWorker(store);
    let held = await startHeld(store, worker, "order-1");
    held = await commitTurn(store, held, sends(held, ["mail", "chat"]));
    await commitTurn(store, held, sends(held, ["mail"], 2));
    assert.deepEqual((await claim(store, worker, ["chat"])).messages, []);
    const first = await take(store, worker, ["mail", "chat"]);
    assert.equal(first.command, "Message(0)");
    assert.deepEqual((await claim(store, worker, ["mail", "chat"])).messages, []);
    assert.equal(await delivered(store, first), true);
    const second = await take(store, worker, ["mail", "chat"]);
    assert.equal(second.command, "Message(1)");
    assert.equal(await delivered(store, second), true);
    const third = await take(store, worker, ["mail", "chat"]);
    assert.equal(await delivered(store, third), false);
    assert.deepEqual((await claim(store, worker, ["mail", "chat"])).messages, []);
  }),

  storeCase("outgoing messages of different runs do not wait for each other", async (store) => {
    const worker = await registerWorker(store);
    for (const id of ["order-1", "order-2", "order-3"]) {
      const held = await startHeld(store, worker, id);
      await commitTurn(store, held, sends(held, ["mail", "mail"]));
    }
    const { messages } = await claim(store, worker, ["mail"], 2);
    assert.deepEqual(
      messages.map(({ runId }) => runId),
      ["order-1", "order-2"],
    );
    assert.equal((await take(store, worker)).runId, "order-3");
  }),

  storeCase("only messages to the named destinations are claimed", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, sends(held, ["mail"]));
    assert.deepEqual((await claim(store, worker, ["chat", "Mail", "mail "])).messages, []);
    await take(store, worker);
  }),

  storeCase("a rejected commit sends no message", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const [outcome] = await store.write([turnWrite(store, { ...held, token: newToken() }, sends(held, ["mail"]))]);
    assert.equal(outcome.status, "lease_lost");
    assert.deepEqual((await claim(store, worker)).messages, []);
    assert.deepEqual((await store.info()).outbox, {
      pending: 0,
      failing: 0,
      oldestAt: undefined,
      destinations: [],
    });
  }),

  storeCase("an outgoing message is delivered or returned only by its token, and only once", async (store) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, sends(held, ["mail", "mail"]));
    const message = await take(store, worker);
    const wrong = { ...fenceOf(message), token: newToken() };
    await assertNothingWritten(store, async () => {
      const outcomes = await store.write([
        { write: "message-delivered", ...wrong },
        { write: "return-message", ...wrong, attempt: 1, availableAt: store.now() },
      ] as const);
      assert.deepEqual(
        outcomes.map(({ status }) => status),
        ["lease_lost", "lease_lost"],
      );
    });
    await delivered(store, message);
    const [again] = await store.write([{ write: "message-delivered", ...fenceOf(message) }] as const);
    assert.equal(again.status, "lease_lost");
    assert.equal((await store.info()).outbox.pending, 1);
  }),

  storeCase(
    "a returned message is claimed again when it is due, with its attempts, before the later ones of its run",
    async (store, t) => {
      const worker = await registerWorker(store);
      const held = await startHeld(store, worker, "order-1");
      await commitTurn(store, held, sends(held, ["mail", "mail"]));
      const message = await take(store, worker);
      const availableAt = store.now() + 1_000;
      await store.write([{ write: "return-message", ...fenceOf(message), attempt: 1, availableAt }]);
      assert.deepEqual(await claim(store, worker), { messages: [], nextAt: availableAt });
      assert.deepEqual((await store.info()).outbox.failing, 1);
      t.clock.advance(1_000);
      const again = await take(store, worker);
      assert.deepEqual([again.command, again.attempt], ["Message(0)", 1]);
      assert.notEqual(again.token, message.token);
    },
  ),

  storeCase("outgoing messages outlive the end of their run and keep it from being pruned", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const { entries, outgoing: sent } = sends(held, ["mail"]);
    await commitTurn(store, held, { ...ENDS, entries: [...entries, DONE], outgoing: sent });
    t.clock.advance(1);
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    const message = await take(store, worker);
    assert.equal(message.data, '{"payload":0}');
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    await delivered(store, message);
    assert.deepEqual(await store.prune(store.now()), { runs: 1 });
  }),

  storeCase(
    "the message of a dead worker is claimed by another one, after a longer delay with every death",
    async (store, t) => {
      const doomed = await registerWorker(store, "doomed");
      const held = await startHeld(store, doomed, "order-1");
      await commitTurn(store, held, waitsAfter(held));
      const message = await take(store, doomed);
      t.clock.advance(LEASE_MS);
      const worker = await registerWorker(store);
      await store.reap(worker);
      const { messages, nextAt } = await claim(store, worker);
      assert.deepEqual([messages, nextAt], [[], store.now() + 1_000]);
      const [late] = await store.write([{ write: "message-delivered", ...fenceOf(message) }] as const);
      assert.equal(late.status, "lease_lost");
      t.clock.advance(1_000);
      const again = await take(store, worker);
      assert.deepEqual([again.command, again.attempt], ["Message(0)", 1]);
    },
  ),

  storeCase("a worker that releases returns its messages at once", async (store) => {
    const leaving = await registerWorker(store, "leaving");
    const held = await startHeld(store, leaving, "order-1");
    await commitTurn(store, held, waitsAfter(held));
    await take(store, leaving);
    await store.releaseWorker(leaving);
    assert.equal((await take(store, await registerWorker(store))).attempt, 0);
  }),

  storeCase("a store counts its outgoing messages, the failed ones, and the age of the oldest", async (store, t) => {
    const worker = await registerWorker(store);
    const held = await startHeld(store, worker, "order-1");
    const sentAt = store.now();
    await commitTurn(store, held, sends(held, ["mail", "chat"]));
    t.clock.advance(5);
    const one = { pending: 1, failing: 0, attempts: 0, oldestAt: sentAt };
    const [chat, mail] = [
      { destination: "chat", ...one },
      { destination: "mail", ...one },
    ];
    const all = { pending: 2, failing: 0, oldestAt: sentAt, destinations: [chat, mail] };
    assert.deepEqual((await store.info()).outbox, all);
    const message = await take(store, worker);
    const availableAt = store.now();
    await store.write([{ write: "return-message", ...fenceOf(message), attempt: 3, availableAt }]);
    const failed = { ...mail, failing: 1, attempts: 3 };
    assert.deepEqual((await store.info()).outbox, { ...all, failing: 1, destinations: [chat, failed] });
    await delivered(store, await take(store, worker));
    assert.deepEqual((await store.info()).outbox, { ...all, pending: 1, destinations: [chat] });
  }),
];
