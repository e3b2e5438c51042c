import assert from "node:assert/strict";
import {
  EVENT_MS,
  eventTypeOf,
  MAX_TAKEOVERS,
  RUN_EVENT_TYPES,
  type ClaimedMessage,
  type EventSubscription,
  type Store,
} from "../../kernel/index.ts";
import {
  commitTurn,
  COMPLETES,
  LEASE_MS,
  newToken,
  newTokens,
  registerWorker,
  startEnded,
  startHeld,
  startRun,
  takeTurn,
  turnWrite,
  type EntryParts,
  type HeldTurn,
  type TurnParts,
} from "./store-actions.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const ALL: EventSubscription = { destination: "webhook:all", types: RUN_EVENT_TYPES };
const FAILURES: EventSubscription = { destination: "webhook:pager", types: ["run.failed", "run.stopped"] };
const REFUNDS: EventSubscription = { destination: "webhook:refunds", types: RUN_EVENT_TYPES, definitions: ["refund"] };
const DESTINATIONS = [ALL, FAILURES, REFUNDS].map(({ destination }) => destination);

async function claim(
  store: Store,
  worker: number,
  destinations: readonly string[] = DESTINATIONS,
  perDestination?: number,
): Promise<readonly ClaimedMessage[]> {
  const limit = perDestination === undefined ? {} : { perDestination };
  const [{ messages }] = await store.write([
    { write: "claim-messages", worker, tokens: newTokens(100), destinations, ...limit },
  ] as const);
  return messages;
}

/** `all: run.ended completed order-1@2`, sorted. */
function lines(messages: readonly ClaimedMessage[]): readonly string[] {
  return messages
    .map(({ destination, runId, event }) => {
      assert.ok(event !== undefined, "a webhook gets events");
      return `${destination.slice(8)}: ${eventTypeOf(event.kind)} ${event.kind} ${runId}@${event.entry}`;
    })
    .toSorted();
}

async function deliver(store: Store, messages: readonly ClaimedMessage[]): Promise<void> {
  for (const { firstRun, run, seq, token } of messages) {
    const [outcome] = await store.write([{ write: "message-delivered", firstRun, run, seq, token }] as const);
    assert.deepEqual(outcome, { status: "committed", more: false });
  }
}

async function stop(store: Store, { run, token }: HeldTurn): Promise<void> {
  const status = "determinism_violation";
  const [outcome] = await store.write([{ write: "stop", run, token, status, evidence: "{}" }] as const);
  assert.equal(outcome.status, "committed");
}

const FAILED: EntryParts = ["RunFailed", "", '{"commands":1,"error":{"$":"error","name":"Error","message":"no"}}'];
const FAILS: TurnParts = { entries: [FAILED], then: "failed" };

function opens(store: Store, { head }: HeldTurn, then: "hold" | "release" = "release"): TurnParts {
  const promise = { command: "Promise(0)", name: "approval", key: undefined, seq: head + 1, at: store.now() };
  return {
    entries: [["PromiseCreated", "Promise(0)", '{"promiseId":"approval"}']],
    promises: { opened: [promise], closed: [] },
    then,
  };
}

export const runEventCases: readonly StoreCase[] = [
  storeCase("the end of a run is an event for every webhook that wants it, in the same commit", async (store) => {
    const worker = await registerWorker(store);
    store.announce([ALL, FAILURES, REFUNDS]);
    await startEnded(store, worker, "order-1");
    await commitTurn(store, await startHeld(store, worker, "order-2"), FAILS);
    await startEnded(store, worker, "refund-1", { definition: "refund" });
    await startRun(store, "order-3");
    await store.write([
      { write: "terminate", id: "order-3", data: '{"terminated":true}', answer: "{}", cancel: '{"reason":"y"}' },
    ]);
    assert.deepEqual(lines(await claim(store, worker)), [
      "all: run.ended cancelled order-3@2",
      "all: run.ended completed order-1@2",
      "all: run.ended completed refund-1@2",
      "all: run.failed failed order-2@2",
      "pager: run.failed failed order-2@2",
      "refunds: run.ended completed refund-1@2",
    ]);
  }),

  storeCase("an event is claimed with what its delivery needs, and once", async (store, t) => {
    const worker = await registerWorker(store);
    store.announce([ALL]);
    const createdAt = store.now();
    const held = await startHeld(store, worker, "order-1");
    t.clock.advance(5);
    await commitTurn(store, held, FAILS);
    const [message, ...others] = await claim(store, worker);
    assert.ok(message !== undefined && others.length === 0);
    const { token: _, seq: __, ...rest } = message;
    assert.deepEqual(rest, {
      firstRun: -held.run,
      run: held.run,
      destination: "webhook:all",
      attempt: 0,
      runId: "order-1",
      generation: 0,
      command: "",
      data: FAILED[2],
      event: {
        entry: 2,
        kind: "failed",
        n: 0,
        definition: "checkout",
        version: 1,
        runCreatedAt: createdAt,
        at: createdAt + 5,
      },
    });
    assert.deepEqual(await claim(store, worker), []);
  }),

  storeCase("an open promise is an event with its entry", async (store) => {
    const worker = await registerWorker(store);
    store.announce([ALL, FAILURES]);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, opens(store, held));
    const messages = await claim(store, worker);
    assert.deepEqual(lines(messages), ["all: promise.opened promise order-1@2"]);
    assert.deepEqual([messages[0]?.command, messages[0]?.data], ["Promise(0)", '{"promiseId":"approval"}']);
  }),

  storeCase("a stop is an event, also a second one at the same entry", async (store) => {
    const worker = await registerWorker(store);
    store.announce([FAILURES, ALL]);
    const held = await startHeld(store, worker, "order-1");
    await stop(store, await commitTurn(store, held, opens(store, held, "hold")));
    await store.write([{ write: "resume", id: "order-1" }]);
    await stop(store, await takeTurn(store, worker));
    assert.deepEqual(lines(await claim(store, worker)), [
      "all: promise.opened promise order-1@2",
      "all: run.stopped determinism_violation order-1@2",
      "all: run.stopped determinism_violation order-1@2",
      "pager: run.stopped determinism_violation order-1@2",
      "pager: run.stopped determinism_violation order-1@2",
    ]);
  }),

  storeCase("a run that the store blocks after too many takeovers is an event", async (store, t) => {
    const survivor = await registerWorker(store);
    await startRun(store, "order-1");
    store.announce([FAILURES]);
    for (let n = 0; n < MAX_TAKEOVERS; n += 1) {
      await takeTurn(store, await registerWorker(store, `doomed-${n}`));
      t.clock.advance(LEASE_MS);
      await store.reap(survivor);
    }
    assert.deepEqual(lines(await claim(store, survivor)), ["pager: run.stopped blocked order-1@1"]);
  }),

  storeCase("a rejected commit writes no event, and neither does a store without webhooks", async (store) => {
    const worker = await registerWorker(store);
    await startEnded(store, worker, "before");
    store.announce([ALL]);
    const held = await startHeld(store, worker, "order-1");
    const [outcome] = await store.write([turnWrite(store, { ...held, token: newToken() }, COMPLETES)]);
    assert.equal(outcome.status, "lease_lost");
    store.announce([]);
    await startEnded(store, worker, "after");
    assert.deepEqual(await claim(store, worker), []);
  }),

  storeCase("events and the messages of their run do not wait for each other", async (store) => {
    const worker = await registerWorker(store);
    store.announce([ALL, FAILURES]);
    const held = await startHeld(store, worker, "order-1");
    await commitTurn(store, held, {
      entries: [["MessageSent", "Message(0)", '{"payload":0}'], ["MessageSent", "Message(1)", '{"payload":1}'], FAILED],
      outgoing: [
        { seq: held.head + 1, destination: "mail" },
        { seq: held.head + 2, destination: "mail" },
      ],
      then: "failed",
    });
    const events = await claim(store, worker);
    assert.equal(events.length, 2);
    const [first] = await claim(store, worker, ["mail"]);
    assert.equal(first?.command, "Message(0)");
    await deliver(store, events);
    const { firstRun, run, seq, token } = first;
    assert.deepEqual(await store.write([{ write: "message-delivered", firstRun, run, seq, token }]), [
      { status: "committed", more: true },
    ]);
    assert.equal((await claim(store, worker, ["mail"]))[0]?.command, "Message(1)");
  }),

  storeCase("a claim takes as many messages of a destination as it asks for", async (store) => {
    const worker = await registerWorker(store);
    store.announce([ALL, FAILURES]);
    for (const id of ["order-1", "order-2", "order-3"])
      await commitTurn(store, await startHeld(store, worker, id), FAILS);
    const first = await claim(store, worker, DESTINATIONS, 2);
    assert.deepEqual(
      lines(first).map((line) => line.split(":")[0]),
      ["all", "all", "pager", "pager"],
    );
    assert.equal((await claim(store, worker, DESTINATIONS, 2)).length, 2);
  }),

  storeCase("an undelivered event keeps its run for three days, and is deleted with it", async (store, t) => {
    const worker = await registerWorker(store);
    store.announce([ALL]);
    await startEnded(store, worker, "order-1");
    t.clock.advance(EVENT_MS - 1);
    assert.deepEqual(await store.prune(store.now()), { runs: 0 });
    assert.deepEqual(await store.deleteRun("order-1"), { status: "sending", run: "order-1" });
    t.clock.advance(1);
    assert.deepEqual(await store.prune(store.now()), { runs: 1 });
    assert.equal((await store.info()).outbox.pending, 0);
  }),

  storeCase("a delivered event keeps nothing", async (store, t) => {
    const worker = await registerWorker(store);
    store.announce([ALL]);
    await startEnded(store, worker, "order-1");
    await deliver(store, await claim(store, worker));
    t.clock.advance(1);
    assert.deepEqual(await store.prune(store.now()), { runs: 1 });
  }),
];
