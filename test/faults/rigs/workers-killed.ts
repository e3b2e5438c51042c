// Workers killed: SIGKILL of worker processes at any point, while the others and the clients continue.

import { Fleet } from "../fleet.ts";
import type { Rig } from "../rig.ts";
import { ALL, openSubject, SERVERS } from "../subject.ts";
import { Workload } from "../workload.ts";

export const workersKilled: Rig = {
  name: "workers-killed",
  title: "SIGKILL of worker processes under load",
  shows: "F1",
  stores: ALL,
  tested: SERVERS,
  rounds: 5,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using work = await Workload.begin(world, subject);
    await using fleet = await Fleet.of(2, { url: subject.url });
    while (world.more()) {
      await world.sometime(20, 220);
      await fleet.replace(world.chance.below(2));
      world.tally.add("kills");
    }
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};
