// Reads: frequent or large reads as direct queries, without row statements.

import { TurnDue } from "../../kernel/index.ts";
import type {
  ArrivalKind,
  Chunk,
  Entry,
  InboxRow,
  InputsRequest,
  ItemInfo,
  NodeInput,
  RunNumber,
  RunProgress,
  RunStatus,
  VersionCount,
} from "../../kernel/index.ts";
import { ARRIVAL_KINDS } from "../rules/flow-reads.ts";
import { itemStateName } from "../rules/read.ts";
import type { Condition, Lookup, Select } from "./query.ts";
import type { Reader } from "./reader.ts";
import type { AnyRow, RowOf, TableName, Value } from "../rows/tables.ts";

export function lookup<T extends TableName>(
  table: T,
  columns: readonly string[],
  keys: readonly (readonly Value[])[],
): Lookup<T> {
  return { kind: "lookup", table, columns, keys, lock: "none" };
}

export const equal = (column: string, value: number | string): Condition => ({ column, is: "=", value });
export const above = (column: string, value: number | string): Condition => ({ column, is: ">", value });

function ordered<T extends TableName>(
  table: T,
  where: readonly Condition[],
  order: string,
  limit: number | undefined,
): Select<T> {
  return { kind: "select", table, where, order: [[order, "asc"]], lock: "none", ...(limit !== undefined && { limit }) };
}

export async function readJournal(
  reader: Reader,
  run: RunNumber,
  after: number,
  limit?: number,
): Promise<readonly Entry[]> {
  const where = [equal("run", run), above("seq", after)];
  const rows = await reader.rows("Reading a journal", ordered("journal", where, "seq", limit));
  return rows.map(entryOf);
}

function entryOf({ seq, type, command, data, at, mark, took_ms: tookMs }: RowOf<"journal">): Entry {
  const entry = { seq, type: type as Entry["type"], command, data, at, mark };
  return tookMs === null ? entry : { ...entry, tookMs };
}

export async function readSteps(
  reader: Reader,
  run: RunNumber,
  after: number,
  upTo: number,
  limit?: number,
): Promise<readonly Entry[]> {
  const where: Condition[] = [equal("run", run), above("step", after), { column: "step", is: "<=", value: upTo }];
  const steps = await reader.rows("Reading steps", ordered("checkpoints", where, "step", limit));
  if (steps.length === 0) return [];
  const keys = steps.map(({ seq }) => [run, seq]);
  const rows = await reader.rows("Reading steps", lookup("journal", ["run", "seq"], keys));
  const entries = new Map(rows.map((row) => [row.seq, entryOf(row)]));
  return steps.flatMap(({ seq }) => entries.get(seq) ?? []);
}

export async function readInbox(reader: Reader, run: RunNumber, after: number): Promise<readonly InboxRow[]> {
  const where = [equal("run", run), above("arrival", after)];
  const rows = await reader.rows("Reading an inbox", ordered("inbox", where, "arrival", undefined));
  return rows.map(({ arrival, type, target, data }) => ({ arrival, type: type as InboxRow["type"], target, data }));
}

/** Chunks have the number of the run's first generation. */
export async function readStream(
  reader: Reader,
  run: RunNumber,
  stream: string,
  after: number,
  limit: number,
): Promise<readonly Chunk[]> {
  const what = "Reading a stream";
  const chunksOf = (first: RunNumber): Select<"chunks"> =>
    ordered("chunks", [equal("run", first), equal("stream", stream), above("position", after)], "position", limit);
  const [[row] = [], chunks = []] = await reader.read(what, [lookup("runs", ["run"], [[run]]), chunksOf(run)]);
  const { id, generation } = (row ?? { id: "", generation: 0 }) as unknown as RowOf<"runs">;
  if (generation === 0) return chunks.map(chunkOf);
  const [first] = await reader.rows(what, lookup("runs", ["id", "generation"], [[id, 0]]));
  return first === undefined ? chunks.map(chunkOf) : (await reader.rows(what, chunksOf(first.run))).map(chunkOf);
}

function chunkOf(row: AnyRow): Chunk {
  return { offset: row["position"] as number, data: row["data"] as string };
}

/** rules.F7. Two round trips for all nodes. */
export async function readInputs(
  reader: Reader,
  asked: readonly InputsRequest[],
): Promise<readonly (readonly NodeInput[])[]> {
  const what = "Reading inputs";
  const targets = asked.flatMap((one) => one.targets.map((target) => [one.run, target]));
  if (targets.length === 0) return asked.map(() => []);
  const arrivals = await reader.rows(what, lookup("arrivals", ["run", "target"], targets));
  if (arrivals.length === 0) return asked.map(() => []);
  const keys = arrivals.map(({ run, seq }) => [run, seq]);
  const entries = await reader.rows(what, lookup("journal", ["run", "seq"], keys));
  const data = new Map(entries.map((row) => [`${row.run} ${row.seq}`, row.data]));
  const byTarget = Map.groupBy(arrivals, ({ run, target }) => `${run} ${target}`);
  return asked.map(({ run, targets: wanted }) =>
    [...new Set(wanted)].toSorted(byBytes).flatMap((target) =>
      (byTarget.get(`${run} ${target}`) ?? []).flatMap(({ edge, idx, kind, seq }): NodeInput[] => {
        const text = data.get(`${run} ${seq}`);
        const input = { target, edge, index: idx, kind: ARRIVAL_KINDS[kind] as ArrivalKind, seq };
        return text === undefined ? [] : [{ ...input, data: text }];
      }),
    ),
  );
}

function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export async function readPulses(reader: Reader, runs: readonly RunNumber[]): Promise<readonly RunProgress[]> {
  if (runs.length === 0) return [];
  const keys = [...new Set(runs)].map((run) => [run]);
  const rows = await reader.rows("Reading runs", lookup("runs", ["run"], keys));
  const byRun = new Map(rows.map((row) => [row.run, row]));
  return runs.flatMap((run) => {
    const row = byRun.get(run);
    if (row === undefined) return [];
    return [{ run, status: row.status as RunStatus, arrivals: row.arrivals, token: row.turn_token ?? undefined }];
  });
}

type Item = { readonly run: RunNumber; readonly item: string };

async function findItems(reader: Reader, items: readonly Item[]): Promise<(item: Item) => RowOf<"queue"> | undefined> {
  if (items.length === 0) return () => undefined;
  const keys = items.map(({ run, item }) => [run, item]);
  const rows = await reader.rows("Reading items", lookup("queue", ["run", "item"], keys));
  const found = new Map(rows.map((row) => [`${row.run} ${row.item}`, row]));
  return ({ run, item }) => found.get(`${run} ${item}`);
}

export async function readItemTokens(reader: Reader, items: readonly Item[]): Promise<readonly (string | undefined)[]> {
  const find = await findItems(reader, items);
  return items.map((item) => find(item)?.token ?? undefined);
}

export async function readItems(
  reader: Reader,
  run: RunNumber,
  names: readonly string[],
): Promise<readonly (ItemInfo | undefined)[]> {
  const items = names.map((item) => ({ run, item }));
  const find = await findItems(reader, items);
  return items.map((item) => {
    const row = find(item);
    if (row === undefined) return undefined;
    const { state, attempt, available_at: availableAt, failures } = row;
    return { state: itemStateName(state), attempt, availableAt, failures: failures ?? undefined };
  });
}

export async function countVersions(reader: Reader): Promise<readonly VersionCount[]> {
  const by = ["definition", "version"];
  const [live = [], due = []] = await reader.read("Counting versions", [
    { kind: "count", table: "runs", where: [{ column: "ended_at", is: "null" }], by },
    {
      kind: "count",
      table: "runs",
      where: [
        { column: "turn_due", is: "=", value: TurnDue.yes, fixed: true },
        { column: "turn_token", is: "null" },
      ],
      by,
    },
  ]);
  const dueOf = new Map(due.map((row) => [JSON.stringify([row["definition"], row["version"]]), row["count"]]));
  return live.map((row) => ({
    name: row["definition"] as string,
    version: row["version"] as number,
    live: row["count"] as number,
    due: (dueOf.get(JSON.stringify([row["definition"], row["version"]])) ?? 0) as number,
  }));
}
