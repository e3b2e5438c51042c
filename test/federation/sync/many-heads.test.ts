// A record has at most 65,535 bytes; a site may know more heads of other logs than fit into it.

import { expect, test } from "vitest";
import { systemClock, systemTimers } from "../../../src/base/index.ts";
import type { LogRecord } from "../../../src/federation/log/record.ts";
import type { Seen } from "../../../src/federation/sync/own-log.ts";
import { Sequencer } from "../../../src/federation/sync/sequencer.ts";
import { double, Site } from "./site.ts";

test("a site that has seen a thousand logs names their heads over several records, the latest first", async () => {
  const site = new Site("edge");
  const names = Array.from({ length: 1_000 }, (_, n) => `${"a-long-name-of-a-site-".repeat(4)}${n}/00112233445566ff`);
  const seen: Seen = Object.fromEntries(names.map((name, n) => [name, { n: 1, c: n + 1 }]));
  const store = await site.store();
  const { key } = site;
  const sequencer = new Sequencer({ store, key, timers: systemTimers, clock: systemClock, seen: () => seen });
  for (let n = 0; n < 5; n += 1) {
    await site.run(double, { [`d-${n}`]: n });
    expect(await sequencer.run()).toMatchObject({ sequenced: 1 });
  }
  const records = (await store.readLog(0, 10)).map(({ rec }) => JSON.parse(rec) as LogRecord);
  expect(records.map(({ y }) => Object.keys(y ?? {}).length)).toEqual([256, 256, 256, 232, 0]);
  expect(records[0]!.c).toBe(1_001);
  expect(new Set(records.flatMap(({ y }) => Object.keys(y ?? {}))).size).toBe(1_000);
});
