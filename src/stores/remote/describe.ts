// Describe: the counts of a store, for operators.

import { QueueItemState } from "../../kernel/index.ts";
import type { RunStatus, StoreInfo } from "../../kernel/index.ts";
import { outboxInfo } from "../rules/outbox.ts";
import { listWorkers } from "../rules/worker-leases.ts";
import type { BackendInfo } from "./backend.ts";
import type { Condition, Query } from "./query.ts";
import type { Reader } from "./reader.ts";
import { CODEC_KEY_PREFIX, CODEC_KEYS_END, type CodecProbe } from "../payload-cipher.ts";

/** Increases with every change of the tables. */
export const SCHEMA_VERSION = 1;

export async function readCodecNotes(reader: Reader): Promise<readonly CodecProbe[]> {
  const rows = await reader.rows("Opening", {
    kind: "select",
    table: "meta",
    where: [
      { column: "key", is: ">=", value: CODEC_KEY_PREFIX },
      { column: "key", is: "<", value: CODEC_KEYS_END },
    ],
    order: [["key", "asc"]],
    lock: "none",
  });
  return rows.map(({ key, value }) => ({ name: key.slice(CODEC_KEY_PREFIX.length), probe: value }));
}

export async function describe(reader: Reader, kind: string, backend: BackendInfo): Promise<StoreInfo> {
  const what = "Describing the store";
  const count = (state: number, ...where: readonly Condition[]): Query => ({
    kind: "count",
    table: "queue",
    where: [{ column: "state", is: "=", value: state, fixed: true }, ...where],
  });
  const tasks: Condition = { column: "kind", is: "=", value: "task" };
  const [statuses = [], ...counts] = await reader.read(what, [
    { kind: "count", table: "runs", where: [], by: ["status"] },
    count(QueueItemState.ready, { column: "queue", is: "null" }),
    count(QueueItemState.ready, { column: "queue", is: "not null" }, tasks),
    count(QueueItemState.parked, tasks),
    count(QueueItemState.suspect),
    count(QueueItemState.leased),
    count(QueueItemState.delayed),
  ]);
  const [ready = 0, lined = 0, parked = 0, suspect = 0, leased = 0, delayed = 0] = counts.map(([row]) =>
    Number(row!["count"]),
  );
  const runs: Partial<Record<RunStatus, number>> = {};
  for (const row of statuses) runs[row["status"] as RunStatus] = row["count"] as number;
  const { location, bytes, durability } = backend;
  return {
    kind,
    location,
    schemaVersion: SCHEMA_VERSION,
    durability,
    bytes,
    codecs: (await readCodecNotes(reader)).map(({ name }) => name),
    runs,
    workers: await reader.withRows(what, listWorkers),
    items: { ready: ready + lined + parked + suspect, leased, delayed },
    outbox: await reader.withRows(what, outboxInfo),
  };
}
