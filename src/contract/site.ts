// The site: what the dashboard shows around every page, and the problem document of every error.

import {
  boolean,
  integer,
  json,
  list,
  object,
  oneOf,
  optional,
  record,
  text,
  time,
  type Static,
} from "./json-schema.ts";

/** Roles, each with those before it. */
export const ROLES = ["viewer", "reader", "approver", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];
export const role = oneOf(ROLES);

export const site = object({
  name: text({ description: "The name of the store, for people: shop.db, shop." }),
  store: text({ description: "SQLite, PostgreSQL, MySQL, MariaDB." }),
  version: text({ description: "The version of Reprise." }),
  now: time(),
  caller: object({ name: text(), role, definitions: optional(list(text())), tags: optional(list(text())) }),
  federated: boolean(),
  executes: boolean("The process of the server also executes runs."),
  openPromises: integer({ description: "Counting stops at 1,000." }),
  /** What an operator must know now, the most urgent first: code that cannot be loaded, a full disk, lost history. */
  notices: list(object({ tone: oneOf(["bad", "warn", "info"]), text: text(), command: optional(text()) })),
});
export type SiteBody = Static<typeof site>;

/** RFC 9457. */
export const problem = object({
  type: text(),
  title: text(),
  status: integer(),
  detail: text(),
  code: text(),
  hint: optional(text({ description: "The command or line of code that helps." })),
  run: optional(text()),
  issues: optional(list(object({ path: text(), message: text() }))),
  error: optional(json("What a failed run threw.")),
});
export type ProblemBody = Static<typeof problem>;

/** A peer of a federated site. */
export const peerBody = object({
  name: text(),
  url: optional(text()),
  origin: optional(text()),
  state: oneOf(["in_step", "behind", "unreachable", "forked", "never_met"]),
  text: text(),
  command: optional(text()),
  lastAt: optional(time()),
  records: optional(integer()),
  behind: optional(integer()),
  facts: record(json()),
});
export type PeerBody = Static<typeof peerBody>;
