// Serve home: the part of a home that the server uses.

import type { Home } from "../home/home.ts";

export type ServeHome = Pick<
  Home,
  | "dir"
  | "origins"
  | "origin"
  | "checkpoint"
  | "firstCheckpointCovering"
  | "readLog"
  | "content"
  | "journal"
  | "hasContents"
  | "putContents"
  | "putJournal"
  | "names"
  | "statements"
  | "ingest"
>;
