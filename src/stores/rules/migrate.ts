// Migrate: moves a live run to another version of its definition (migrate.M1 to migrate.M4).

import {
  hasEnded,
  isNodeRoute,
  nodeRoute,
  QueueItemState,
  readNodeRoute,
  TurnDue,
  type MigrateOutcome,
  type MigrateWrite,
  type RunNumber,
} from "../../kernel/index.ts";
import type { Part, Rows, Span } from "../rows/rows.ts";
import { LOST_ITEM, LOST_TURN, recordLostItem, recordLostTurn, workerName } from "./attempts.ts";
import { startItemName } from "./backlog.ts";
import { appendEntry } from "./control.ts";
import { START_ITEM } from "./pending-start.ts";
import { freeSlots, slotKeysOf } from "./queue-limiter.ts";
import { NO_TURN } from "./run-rows.ts";
import type { Tx } from "./transaction.ts";

const RUN = [...LOST_TURN, "kind", "definition", "chain", "turn_token", "turn_due", "evidence"] as const;
const ITEM = [...LOST_ITEM, "name", "kind", "state", "worker", "queue", "key"] as const;
type Item = Part<"queue", (typeof ITEM)[number]>;
const STATE = ["state"] as const;

/** First checks everything that the replay of the run depends on. */
export function applyMigrate(tx: Tx, write: MigrateWrite): MigrateOutcome {
  const { rows } = tx;
  const { run, version } = write;
  const row = rows.get("runs", [run], RUN);
  const start = rows.get("queue", [run, START_ITEM], STATE);
  const nodes = row?.kind === "flow" ? nodesOf(rows, run) : [];
  // migrate.M2
  if (row === undefined || hasEnded(row.status)) return { status: "moved" };
  if (!rows.isGuess && (row.head !== write.head || row.chain !== write.chain)) return { status: "moved" };
  const moved = nodes.map((item) => ({ item, route: routeIn(version, item) }));
  const stray = moved.find(({ route }) => write.routes?.includes(route) !== true);
  if (stray !== undefined) return { status: "no_route", item: stray.item.item, route: stray.route };

  const chain = appendEntry(tx, row, "RunMigrated", write.data);
  const isPaused = row.status === "paused";
  // migrate.M3
  const lost = row.turn_token === null ? {} : recordLostTurn(tx, row, "returned", workerName(rows, row.turn_worker));
  rows.set("runs", [run], {
    ...NO_TURN,
    version,
    head: row.head + 1,
    chain,
    takeovers: 0,
    ...(row.turn_due === TurnDue.notStarted
      ? { turn_due: TurnDue.notStarted }
      : // migrate.M4
        !isPaused && ({ status: "queued", turn_due: TurnDue.yes, evidence: null } as const)),
    ...lost,
  });
  if (start !== undefined) rows.set("queue", [run, START_ITEM], { name: startItemName(row.definition, version) });
  for (const { item, route } of moved) moveNode(tx, item, route, isPaused);
  freeSlots(tx, slotKeysOf(nodes.filter(isLeased)));
  return { status: "committed" };
}

const TASKS = { also: { kind: "task" } } as const satisfies Span<"queue">;

/** The queued nodes of a flow. */
function nodesOf(rows: Rows, run: RunNumber): readonly Item[] {
  return rows.select("queue", [run], ITEM, TASKS).filter(({ name }) => isNodeRoute(name));
}

/** The same queue and label in another version. */
function routeIn(version: number, { name }: Item): string {
  const route = readNodeRoute(name);
  return route === undefined ? name : nodeRoute(route.definition, version, route.queue, route.label);
}

function isLeased({ state }: Item): boolean {
  return state === QueueItemState.leased;
}

/** migrate.M3. A node that a worker executes is queued again. */
function moveNode(tx: Tx, item: Item, name: string, isPaused: boolean): void {
  const lost = isLeased(item) ? recordLostItem(tx, item, "returned", workerName(tx.rows, item.worker)) : {};
  const isDelayed = item.state === QueueItemState.delayed || item.state === QueueItemState.parked;
  const state = isDelayed ? item.state : isPaused ? QueueItemState.stopped : QueueItemState.ready;
  tx.rows.set("queue", [item.run, item.item], { name, state, token: null, worker: null, takeovers: 0, ...lost });
}
