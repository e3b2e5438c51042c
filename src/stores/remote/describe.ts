// Describe: what an operator wants to know.

import type { Status, StoreInfo } from "../../kernel/index.ts";
import { outboxInfo } from "../rules/outbox.ts";
import { listWorkers } from "../rules/reap.ts";
import type { BackendInfo } from "./backend.ts";
import type { Condition, Question } from "./query.ts";
import type { Reader } from "./reader.ts";
import { CODEC_NOTE, type CodecNote } from "../seal.ts";

/** Raised with every change of the tables. */
export const SCHEMA_VERSION = 1;

export async function readCodecNotes(reader: Reader): Promise<readonly CodecNote[]> {
  const rows = await reader.rows("Opening", {
    ask: "select",
    table: "meta",
    where: [
      { column: "key", is: ">=", value: CODEC_NOTE },
      { column: "key", is: "<", value: "codec!" },
    ],
    order: [["key", "asc"]],
    lock: "none",
  });
  return rows.map(({ key, value }) => ({ name: key.slice(CODEC_NOTE.length), probe: value }));
}

export async function describe(reader: Reader, kind: string, backend: BackendInfo): Promise<StoreInfo> {
  const what = "Describing the store";
  const count = (state: number, ...where: readonly Condition[]): Question => ({
    ask: "count",
    table: "queue",
    where: [{ column: "state", is: "=", value: state, fixed: true }, ...where],
  });
  const tasks: Condition = { column: "kind", is: "=", value: "task" };
  const [statuses = [], ...counts] = await reader.read(what, [
    { ask: "count", table: "runs", where: [], by: ["status"] },
    count(1, { column: "queue", is: "null" }),
    count(1, { column: "queue", is: "not null" }, tasks),
    count(5, tasks),
    count(4),
    count(2),
    count(0),
  ]);
  const [ready = 0, lined = 0, parked = 0, suspect = 0, leased = 0, delayed = 0] = counts.map(([row]) =>
    Number(row!["count"]),
  );
  const runs: Partial<Record<Status, number>> = {};
  for (const row of statuses) runs[row["status"] as Status] = row["count"] as number;
  const { location, bytes, durability } = backend;
  return {
    kind,
    location,
    schemaVersion: SCHEMA_VERSION,
    durability,
    bytes,
    codecs: (await readCodecNotes(reader)).map(({ name }) => name),
    runs,
    workers: await reader.speak(what, listWorkers),
    items: { ready: ready + lined + parked + suspect, leased, delayed },
    outbox: await reader.speak(what, outboxInfo),
  };
}
