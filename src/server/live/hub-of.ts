// The live parts of a server, one of each, made with the first use.

import { RepriseError } from "../../base/index.ts";
import { liveReadsOf, type LiveReads } from "../../engine/index.ts";
import type { ServerHost } from "../host.ts";
import { ChangeHub } from "./changes.ts";
import { StreamTails } from "./stream-tail.ts";

const hubs = new WeakMap<ServerHost, ChangeHub>();
const tails = new WeakMap<ServerHost, StreamTails>();

/** The one change feed of a server. */
export function changeHubOf(host: ServerHost): ChangeHub {
  let hub = hubs.get(host);
  if (hub === undefined) hubs.set(host, (hub = new ChangeHub({ ...host, live: getLiveReads(host) })));
  return hub;
}

export function streamTailsOf(host: ServerHost): StreamTails {
  let made = tails.get(host);
  if (made === undefined) tails.set(host, (made = new StreamTails(getLiveReads(host), host.store)));
  return made;
}

export function getLiveReads({ client }: Pick<ServerHost, "client">): LiveReads {
  const live = liveReadsOf(client);
  if (live !== undefined) return live;
  throw new RepriseError(
    "BAD_OPTIONS",
    "This server was made with an object that has no live reads. Pass the engine or client that createEngine or createClient returned.",
  );
}
