import assert from "node:assert/strict";
import { KEYED_ANSWER_MS } from "../../kernel/index.ts";
import { storeCase, type StoreCase } from "./store-case.ts";

const HOLD = 10_000;
const ASKED = { request: "a1", body: "b1" };
const OTHER = { request: "a1", body: "b2" };

export const keyedAnswerCases: readonly StoreCase[] = [
  storeCase("a key is reserved once, and its repetition gets the recorded answer", async (store) => {
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), { status: "reserved" });
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), { status: "held", heldUntil: store.now() + HOLD });
    await store.recordAnswer(ASKED, 201, '{"run":"order-7"}');
    const answered = { status: "answered", code: 201, answer: '{"run":"order-7"}' };
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), answered);
    // The first answer stays.
    await store.recordAnswer(ASKED, 200, "{}");
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), answered);
    assert.deepEqual(await store.check(), []);
  }),

  storeCase("a key with another body is refused, before and after its answer", async (store) => {
    await store.reserveKey(ASKED, HOLD);
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "other_body" });
    // A request that does not have the key changes nothing.
    await store.recordAnswer(OTHER, 200, "{}");
    await store.releaseKey(OTHER, true);
    assert.equal((await store.reserveKey(ASKED, HOLD)).status, "held");
    await store.recordAnswer(ASKED, 200, "1");
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "other_body" });
    assert.deepEqual(await store.reserveKey({ request: "a2", body: "b2" }, HOLD), { status: "reserved" });
  }),

  storeCase("a reservation whose process died is taken over when its time is over", async (store, t) => {
    await store.reserveKey(ASKED, HOLD);
    t.clock.advance(HOLD - 1);
    assert.equal((await store.reserveKey(ASKED, HOLD)).status, "held");
    t.clock.advance(1);
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), { status: "reserved" });
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), { status: "held", heldUntil: store.now() + HOLD });
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "other_body" });
  }),

  storeCase("a released key is free, or for the same request only", async (store) => {
    await store.reserveKey(ASKED, HOLD);
    await store.releaseKey(ASKED, false);
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "other_body" });
    assert.deepEqual(await store.reserveKey(ASKED, HOLD), { status: "reserved" });
    await store.releaseKey(ASKED, true);
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "reserved" });
    await store.recordAnswer(OTHER, 204, "null");
    await store.releaseKey(OTHER, true);
    assert.equal((await store.reserveKey(OTHER, HOLD)).status, "answered");
  }),

  storeCase("answers are kept for a day, then the key is free and a sweep deletes them", async (store, t) => {
    for (const request of ["a1", "a2", "a3"]) {
      await store.reserveKey({ request, body: "b1" }, HOLD);
      await store.recordAnswer({ request, body: "b1" }, 200, "1");
    }
    t.clock.advance(KEYED_ANSWER_MS - 1);
    await store.reserveKey({ request: "young", body: "b1" }, HOLD);
    assert.equal(await store.deleteOldAnswers(), 0);
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "other_body" });
    t.clock.advance(1);
    assert.deepEqual(await store.reserveKey(OTHER, HOLD), { status: "reserved" });
    assert.equal(await store.deleteOldAnswers(), 2);
    assert.deepEqual(await store.reserveKey({ request: "a2", body: "b9" }, HOLD), { status: "reserved" });
    assert.equal((await store.reserveKey({ request: "young", body: "b1" }, HOLD)).status, "held");
  }),

  storeCase("of several connections that reserve a key at once, one gets it", async (store, t) => {
    const all = [store, await t.openAgain(), await t.openAgain()];
    const found = await Promise.all(all.map((one) => one.reserveKey(ASKED, HOLD)));
    assert.deepEqual(found.map(({ status }) => status).sort(), ["held", "held", "reserved"]);
  }),
];
