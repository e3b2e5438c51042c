// A process that puts run order-1 of a store into a mirror, and stops at a place until it is killed.

import { systemClock, systemRandom, systemTimers } from "../../src/base/index.ts";
import { copyOf, Mirror, type CopiedRun } from "../../src/stores/maintenance/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/sqlite-store.ts";

const [home = "", path = "", place = ""] = process.argv.slice(2);
const PORTS = { clock: systemClock, timers: systemTimers, random: systemRandom };
const store = await openSqliteStore({ path: home, ...PORTS, readOnly: true });
const mirror = await Mirror.open({ path, name: "prod", ...PORTS });
const copy = (await copyOf(store, { id: "order-1", generation: 0 }))!;

async function at(where: string): Promise<void> {
  if (where !== place) return;
  process.stdout.write(`${where}\n`);
  await new Promise(() => setInterval(() => {}, 1_000));
}

const slow: CopiedRun = {
  ...copy,
  async *entries() {
    let page = 0;
    for await (const entries of copy.entries()) {
      await at(`page ${page}`);
      yield entries;
      page += 1;
    }
  },
  async *rows() {
    yield* copy.rows();
    await at("staged");
  },
};
await mirror.put([slow]);
