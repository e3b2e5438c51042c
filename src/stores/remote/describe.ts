// Describe: the facts about a store, for operators (../rules/describe.ts).

import type { DestinationInfo, RunStatus, StoreInfo } from "../../kernel/index.ts";
import { CODEC_KEY_PREFIX, CODEC_KEYS_END, type CodecProbe } from "../payload-cipher.ts";
import { countWork } from "../rules/describe.ts";
import type { BackendInfo } from "./backend.ts";
import type { Reader } from "./reader.ts";
import { rowSession } from "./row-session.ts";
import type { RemoteSession } from "./session.ts";

const WHAT = "Describing the store";

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

export async function describe(
  session: Pick<RemoteSession, "reader" | "runner" | "now">,
  kind: string,
  backend: BackendInfo,
): Promise<StoreInfo> {
  const { location, bytes, durability, schemaVersion } = backend;
  const codecs = await readCodecNotes(session.reader);
  const work = await countWork(rowSession(session), {
    countRuns: () => countRuns(session.reader),
    countMessages: () => countMessages(session.reader),
  });
  return {
    kind,
    location,
    schemaVersion,
    durability,
    bytes,
    codecs: codecs.map(({ name }) => name),
    ...work,
  };
}

async function countRuns(reader: Reader): Promise<StoreInfo["runs"]> {
  const runs: Partial<Record<RunStatus, number>> = {};
  const [statuses = []] = await reader.read(WHAT, [{ kind: "count", table: "runs", where: [], by: ["status"] }]);
  for (const row of statuses) runs[row["status"] as RunStatus] = Number(row["count"]);
  return runs;
}

async function countMessages(reader: Reader): Promise<readonly DestinationInfo[]> {
  const count = { kind: "count", table: "outbox", by: ["destination"] } as const;
  const [all = [], failing = []] = await reader.read(WHAT, [
    { ...count, where: [{ column: "destination", is: "not null" }], least: "sent_at", most: "attempt" },
    { ...count, where: [{ column: "attempt", is: ">", value: 0 }] },
  ]);
  const failed = new Map(failing.map((row) => [row["destination"], Number(row["count"])]));
  return all.map((row) => ({
    destination: String(row["destination"]),
    pending: Number(row["count"]),
    failing: failed.get(row["destination"]!) ?? 0,
    attempts: Number(row["most"]),
    oldestAt: Number(row["least"]),
  }));
}
