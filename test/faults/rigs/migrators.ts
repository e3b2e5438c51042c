// Migrators: several processes migrate an empty database at the same time; one is killed in the middle.

import { steps } from "../definitions.ts";
import { WorkerProcess } from "../fleet.ts";
import type { Rig } from "../rig.ts";
import { ALL, openStore, openSubject } from "../subject.ts";
import { checkRun, openClient } from "../workload.ts";

const AT_ONCE = 5;

export const migrators: Rig = {
  name: "migrators",
  title: `${AT_ONCE} processes migrate an empty database at once, one is killed in the middle`,
  shows: "F38",
  stores: ALL,
  tested: ALL,
  rounds: 1,
  async run(world) {
    while (world.more()) {
      await using subject = await openSubject(world.store);
      const processes = Array.from({ length: AT_ONCE }, () => new WorkerProcess({}));
      try {
        await Promise.all(processes.map((each) => each.says("here")));
        for (const each of processes) each.send({ url: subject.url });
        const victim = processes[world.chance.below(AT_ONCE)]!;
        await world.sometime(0, 60);
        if (!victim.heard.includes("ready")) world.tally.add("killed before it was done");
        await victim.kill();
        world.tally.add("kills");
        await Promise.all(processes.filter((each) => each !== victim).map((each) => each.says("ready")));
        await using client = await openClient(subject.url);
        await (await client.start(steps, 5, { id: "after" })).result({ timeout: "120 s" });
        world.tally.add("acknowledged");
      } finally {
        await Promise.all(processes.map((each) => each.kill()));
      }
      const store = await openStore(subject);
      for (const { invariant, message } of await store.check()) world.tally.broken(`${invariant}: ${message}`);
      await checkRun(store, "after", 10, world.tally);
      await store.close();
    }
  },
};
