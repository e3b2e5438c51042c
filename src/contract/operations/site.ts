// The site and its peers: what surrounds every page of the dashboard.

import { boolean, json, list, object, optional, text, time, integer, type Static } from "../json-schema.ts";
import { operation } from "../operation.ts";
import { peerBody, site } from "../site.ts";

/** Two histories or contents that contradict each other. */
export const conflictBody = object({
  id: integer(),
  kind: text({ description: "fork, content, divergence." }),
  subject: text({ description: "What it is about: an origin, a key, or a memo." }),
  peer: optional(text()),
  firstSeen: time(),
  state: text({ description: "open, resolved." }),
  resolution: optional(text()),
  evidence: optional(json()),
  command: optional(text({ description: "The command that helps." })),
});
export type ConflictBody = Static<typeof conflictBody>;

export const siteOperations = {
  getSite: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/site",
    scope: "filtered",
    group: "Site",
    summary: "Reads the name of the store, the caller and its role, and what an operator must know now.",
    answer: site,
    example: {},
  }),
  listPeers: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/peers",
    group: "Federation",
    summary: "Lists the peers of a federated site and how the exchange with them goes.",
    answer: object({
      origin: optional(text({ description: "The name of this site's log; absent if it is not federated." })),
      waiting: integer({ description: "Ended runs that are not in the log yet; counting stops at 1,000." }),
      items: list(peerBody),
    }),
    example: {},
  }),
  listConflicts: operation({
    role: "viewer",
    method: "GET",
    path: "/v1/conflicts",
    group: "Federation",
    summary: "Lists histories and contents that contradict each other.",
    query: object({ all: optional(boolean("With resolved ones.")) }),
    answer: object({ items: list(conflictBody) }),
    example: { query: { all: true } },
  }),
};
