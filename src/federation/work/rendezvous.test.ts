// Rendezvous: the order of peers for a step.

import { expect, test } from "vitest";
import { rankPeers } from "./rendezvous.ts";

const PEERS = ["a", "b", "c", "d"];
const STEPS = Array.from({ length: 400 }, (_, n) => [`run-${n % 40}`, `Task(${n})`] as const);

test("every process computes the same order, in whatever order it knows the peers", () => {
  for (const [run, command] of STEPS)
    expect(rankPeers(run, command, PEERS.toReversed())).toEqual(rankPeers(run, command, PEERS));
});

test("the peers share the steps about equally", () => {
  const counts = Map.groupBy(STEPS, ([run, command]) => rankPeers(run, command, PEERS)[0]);
  for (const peer of PEERS) expect(counts.get(peer)?.length).toBeGreaterThan(STEPS.length / PEERS.length / 2);
});

test("a peer that leaves moves only its own steps, and each to the next in its order", () => {
  for (const [run, command] of STEPS) {
    const before = rankPeers(run, command, PEERS);
    const after = rankPeers(
      run,
      command,
      PEERS.filter((peer) => peer !== "b"),
    );
    expect(after).toEqual(before.filter((peer) => peer !== "b"));
  }
});

test("run and command both decide", () => {
  const first = (run: string, command: string) => rankPeers(run, command, PEERS)[0];
  expect(new Set(STEPS.map(([, command]) => first("run-1", command))).size).toBe(PEERS.length);
  expect(new Set(STEPS.map(([run]) => first(run, "Task(0)"))).size).toBe(PEERS.length);
});
