// Network: faults between workers and their database, by a proxy that decides the fate of every message.

import { isCommit, startProxy, type Fate, type Proxy, type ProxyMessage } from "../../servers/proxy.ts";
import { Fleet } from "../fleet.ts";
import { until, type Rig, type World } from "../rig.ts";
import { openStore, openSubject, SERVERS } from "../subject.ts";
import { Workload } from "../workload.ts";

interface Trouble {
  readonly what: string;
  readonly rule: (message: ProxyMessage) => Fate;
}

/** Fates of a COMMIT: its outcome is unknown to the client, and it must still be applied exactly once. */
const COMMITS: readonly Trouble[] = [
  { what: "cuts before COMMIT", rule: (message) => (isCommit(message) ? "cut" : "pass") },
  { what: "cuts after COMMIT", rule: (message) => (isCommit(message) ? "last" : "pass") },
  { what: "answers to COMMIT swallowed", rule: (message) => (isCommit(message) ? "unanswered" : "pass") },
];

const HOLES: readonly Trouble[] = [
  { what: "holes to the server", rule: ({ to }) => (to === "server" ? "hole" : "pass") },
  { what: "holes to the client", rule: ({ to }) => (to === "client" ? "hole" : "pass") },
  { what: "holes both ways", rule: () => "hole" },
];

/** The rule applies to one message; its connection is lost, others are not affected. */
async function once(proxy: Proxy, { what, rule }: Trouble, world: World): Promise<void> {
  let victim: number | undefined;
  let isDone = false;
  proxy.rule = (message) => {
    if (victim !== undefined && message.connection !== victim) return "pass";
    const fate = isDone && !what.startsWith("holes") ? "pass" : rule(message);
    if (fate === "pass") return fate;
    victim = message.connection;
    isDone = true;
    return fate;
  };
  await until(what, () => isDone);
  world.tally.add(what);
}

export const commitsCut: Rig = {
  name: "commits-cut",
  title: "connections cut before and after COMMIT, its answer swallowed",
  shows: "F12, ACC 40",
  stores: SERVERS,
  tested: SERVERS,
  rounds: 6,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using proxy = await startProxy(subject.url);
    await using work = await Workload.begin(world, subject, { clientUrl: proxy.url });
    await using fleet = await Fleet.of(2, { url: proxy.url, lease: 3_000 });
    for (let round = 0; world.more(); round += 1) {
      await world.sometime(20, 150);
      await once(proxy, COMMITS[round % COMMITS.length]!, world);
    }
    proxy.rule = () => "pass";
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};

export const blackHoles: Rig = {
  name: "black-holes",
  title: "connections that swallow everything, one way and both ways, without a word",
  shows: "F17",
  stores: SERVERS,
  tested: ["postgres"],
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using proxy = await startProxy(subject.url);
    await using work = await Workload.begin(world, subject, { loads: 12, transfers: 4 });
    await using fleet = await Fleet.of(2, { url: proxy.url, lease: 3_000 });
    for (let round = 0; world.more(); round += 1) {
      await world.sometime(20, 150);
      await once(proxy, HOLES[round % HOLES.length]!, world);
      const acknowledged = work.acknowledged;
      await until("work to make progress", () => work.acknowledged > acknowledged + 5);
    }
    // The rule stays: these connections never respond, and nothing may wait for them.
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};

/** Recognizes the heartbeat's connection by its statement. */
const isHeartbeat = ({ statement = "" }: ProxyMessage): boolean => /update\s+\S*workers\b/i.test(statement);

export const slowNetwork: Rig = {
  name: "slow-network",
  title: "every message of the data connections is delayed by 0.1 to 5 s; heartbeats are not",
  shows: "F18",
  stores: SERVERS,
  tested: ["mysql"],
  rounds: 2,
  async run(world) {
    await using subject = await openSubject(world.store);
    await using proxy = await startProxy(subject.url);
    await using work = await Workload.begin(world, subject, { loads: 6, transfers: 2 });
    await using fleet = await Fleet.of(2, { url: proxy.url, lease: 3_000 });
    const store = await openStore(subject);
    const numbers = async (): Promise<string> => (await store.listWorkers()).map(({ worker }) => worker).join();
    const hearts = new Set<number>();
    const before = await numbers();
    const delays = [100, 500, 1_500, 5_000];
    for (let round = 0; world.more(); round += 1) {
      const delayMs = delays[round % delays.length]!;
      let delayed = 0;
      proxy.rule = (message) => {
        if (isHeartbeat(message)) hearts.add(message.connection);
        if (hearts.has(message.connection)) return "pass";
        delayed += 1;
        return { delayMs };
      };
      await until("messages to be delayed", () => delayed >= 20, 200_000);
      world.tally.add("delayed messages", delayed);
    }
    proxy.rule = () => "pass";
    if ((await numbers()) !== before) world.tally.broken("a worker lost its lease to a slow network");
    await store.close();
    await work.finish();
    await fleet[Symbol.asyncDispose]();
    await work.check();
  },
};
