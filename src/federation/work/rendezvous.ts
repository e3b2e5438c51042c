// Rendezvous: which of several peers executes a step. Every process computes the same order, and a peer that leaves moves only its own
// steps (highest random weight).

import { digestOf } from "../../base/index.ts";

/** The peers in the order in which they are asked to execute this command of this run. */
export function rankPeers(run: string, command: string, peers: Iterable<string>): readonly string[] {
  return [...new Set(peers)]
    .map((peer) => ({ peer, weight: digestOf("reprise/rendezvous/v1", run, command, peer) }))
    .toSorted((a, b) => (a.weight < b.weight ? 1 : -1))
    .map(({ peer }) => peer);
}
