// A process of sequencer-postgres.test.ts: `workers`: four workers; `sequencer`: appends ends to the log until it is asked to stop.
// Says `ready`, and `stopped` with the number of ends that it has appended.

import { createEngine, type Engine } from "reprise";
import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import { Sequencer } from "../../../src/federation/sync/sequencer.ts";
import { signingKeyOf } from "../../../src/receipts/index.ts";
import { storeOf } from "../../../src/stores/store-url.ts";
import { DEFINITIONS } from "./sequencer-definitions.ts";

const WORKERS = 4;
const [url = "", role = ""] = process.argv.slice(2);
const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

process.on("disconnect", () => process.exit(1));
const stopRequested = new Promise<void>((resolve) => process.once("message", () => resolve()));

async function work(): Promise<void> {
  const engines: Engine[] = [];
  for (let n = 0; n < WORKERS; n++)
    engines.push(
      await createEngine({ store: url, definitions: DEFINITIONS, logger: SILENT, worker: { lease: 3_000 } }),
    );
  process.send?.("ready");
  await stopRequested;
  for (const engine of engines) await engine.close();
}

async function sequence(): Promise<number> {
  const ports = { clock: systemClock, timers: systemTimers, random: systemRandom };
  const store = await storeOf(url)["~open"]({ ...ports, durability: "full" });
  const key = signingKeyOf(new Uint8Array(32), "edge7");
  const sequencer = new Sequencer({ store, key, ...ports });
  let isOver = false;
  void stopRequested.then(() => (isOver = true));
  let sequenced = (await sequencer.run()).sequenced;
  process.send?.("ready");
  while (!isOver) {
    const { sequenced: some } = await sequencer.run();
    sequenced += some;
    await new Promise<void>((resolve) => void systemTimers.set(5, resolve));
  }
  await store.close();
  return sequenced;
}

const count = role === "workers" ? (await work(), 0) : await sequence();
process.send?.(`stopped ${count}`, () => process.exit());
