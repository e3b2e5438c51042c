// The relay of webhooks against a real receiver, with a clock that the test sets: when deliveries are repeated, and when they end.

import { expect, test } from "vitest";
import { systemTimers, webhookKeyOf } from "../../src/base/index.ts";
import {
  EVENT_MS,
  eventLineOf,
  eventSeqOf,
  type ClaimedMessage,
  type MessageDeliveredWrite,
  type ReturnMessageWrite,
} from "../../src/kernel/index.ts";
import { WebhookRelay, retryAfterMs } from "../../src/worker/webhook-relay.ts";
import { SECRET, startReceiver, type Receiver, type Reply } from "./receiver.ts";

const HAPPENED = 1_000_000;
const place = { entry: 2, kind: "completed", n: 0 } as const;
const MESSAGE: ClaimedMessage = {
  firstRun: eventLineOf(7),
  run: 7,
  seq: eventSeqOf(place),
  token: "t",
  runId: "order-1",
  generation: 0,
  destination: "webhook:x",
  command: "",
  attempt: 0,
  data: '{"output":1}',
  event: { ...place, definition: "order", version: 1, runCreatedAt: HAPPENED - 5, at: HAPPENED },
};

type Written = MessageDeliveredWrite | ReturnMessageWrite;

/** What the relay writes after one delivery at a time, and what it logs. */
async function deliverAt(
  now: number,
  receiver: Pick<Receiver, "url">,
  message: ClaimedMessage = MESSAGE,
): Promise<{ readonly write: Written; readonly logged: readonly string[] }> {
  const logged: string[] = [];
  const write = await new Promise<Written>((resolve) => {
    const relay = new WebhookRelay({
      webhooks: [
        {
          name: "x",
          destination: "webhook:x",
          url: receiver.url,
          keys: [webhookKeyOf(SECRET, "secret")],
          types: ["run.ended"],
          payloads: false,
          headers: {},
          link: undefined,
        },
      ],
      timers: systemTimers,
      now: () => now,
      wantMessages: () => undefined,
      dueAt: () => undefined,
      submit: resolve,
      log: (level, text) => void logged.push(`${level}: ${text}`),
    });
    relay.deliver(message);
  });
  return { write, logged };
}

async function answering(reply: Reply, now: number, message?: ClaimedMessage): ReturnType<typeof deliverAt> {
  await using receiver = await startReceiver(() => reply);
  // Awaited here, so that the receiver stays open.
  return await deliverAt(now, receiver, message);
}

/** How long until the next delivery; undefined: there is none. */
function delayOf(write: Written, now: number): number | undefined {
  return write.write === "return-message" ? write.availableAt - now : undefined;
}

test("a delivery is repeated at growing distances, up to an hour", async () => {
  const delays: (number | undefined)[] = [];
  for (const attempt of [0, 1, 4, 30]) {
    const { write } = await answering(500, HAPPENED, { ...MESSAGE, attempt });
    expect(write).toMatchObject({ write: "return-message", attempt: attempt + 1, token: "t", firstRun: -7 });
    delays.push(delayOf(write, HAPPENED));
  }
  const [first = 0, second = 0, fifth = 0, late = 0] = delays as number[];
  expect(first).toBeLessThanOrEqual(2_000);
  expect(second).toBeGreaterThan(first / 2);
  expect(fifth).toBeGreaterThan(second);
  expect(late).toBeLessThanOrEqual(3_600_000);
  expect(late).toBeGreaterThan(1_800_000);
});

test("Retry-After is respected, as seconds or as a date, but not beyond the three days", async () => {
  const later = async (value: string): Promise<number | undefined> =>
    delayOf((await answering({ status: 429, headers: { "retry-after": value } }, HAPPENED)).write, HAPPENED);
  expect(await later("120")).toBe(120_000);
  expect(await later(new Date(HAPPENED + 600_000).toUTCString())).toBe(600_000);
  expect(await later("99999999")).toBe(EVENT_MS);
  expect(await later("soon")).toBeLessThanOrEqual(2_000);
  expect([retryAfterMs(null, 0), retryAfterMs("-1", 5), retryAfterMs("0", 5)]).toEqual([0, 0, 0]);
});

test("after three days an event is dropped, with an error in the log", async () => {
  const before = await answering(500, HAPPENED + EVENT_MS - 1);
  expect(before.write.write).toBe("return-message");
  expect(before.logged[0]).toBe(
    "warn: Attempt 1 to deliver run.ended of run order-1 to the webhook x failed: the endpoint answered 500.",
  );
  const after = await answering(500, HAPPENED + EVENT_MS);
  expect(after).toEqual({
    write: { write: "message-delivered", firstRun: -7, run: 7, seq: MESSAGE.seq, token: "t" },
    logged: [
      "error: The event run.ended of run order-1 for the webhook x is dropped: the endpoint answered 500, for 3 days.",
    ],
  });
  // A late event is still tried once.
  expect((await answering(204, HAPPENED + EVENT_MS)).logged).toEqual([]);
});

test("an endpoint that cannot be reached is tried again, and the event of a run that is gone is dropped", async () => {
  const { write, logged } = await deliverAt(HAPPENED, { url: "http://127.0.0.1:9/" });
  expect(write.write).toBe("return-message");
  expect(logged[0]).toMatch(
    /^warn: Attempt 1 to deliver run\.ended of run order-1 to the webhook x failed: (?!fetch failed).+/,
  );
  const { event: _, ...gone } = MESSAGE;
  const dropped = await answering(204, HAPPENED, gone);
  expect(dropped.write.write).toBe("message-delivered");
  expect(dropped.logged[0]).toContain("is dropped: its run is gone");
});
