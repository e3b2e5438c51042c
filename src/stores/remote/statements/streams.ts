// @ts-nocheck
// Statements for the chunks of streams and the outbox.

import { OutboxState } from "../../../kernel/index.ts";
import {
  atMost,
  equal,
  firstOfLine,
  fixed,
  lastChunkOf,
  lastOfLine,
  outgoingAfter,
  outgoingTo,
  some,
} from "./selections.ts";
import type { RowOf } from "../../rows/tables.ts";
import { change, exists, effect, one, rows, type StatementContext } from "./context.ts";

type Outgoing = RowOf<"outbox">;

export function streamStatements({ ws, lock }: StatementContext) {
  const held = (line: number, run: number, seq: number, token: string): Outgoing | undefined => {
    const row = ws.get("outbox", lock("outbox"), line, run, seq);
    return row?.token === token ? row : undefined;
  };

  return {
    insertChunk: effect(
      (run: number, stream: string, position: number, data: string) =>
        void ws.insert("chunks", { run, stream, position, data }),
    ),
    lastChunk: one((run: number, stream: string) => ({
      last: ws.select(lastChunkOf(run, stream))[0]?.position ?? null,
    })),
    chunksAfter: rows((run: number, stream: string, after: number, limit: number) =>
      ws
        .select({
          kind: "select",
          table: "chunks",
          where: [equal("run", run), equal("stream", stream), { column: "position", is: ">", value: after }],
          order: [["position", "asc"]],
          ...atMost(limit),
          lock: "none",
        })
        .map(({ position, data }) => ({ offset: position, data })),
    ),
    emittedCount: one((run: number, stream: string) => {
      const row = ws.get("emitted", "none", run, stream);
      return row && { count: row.count };
    }),
    emittedCounts: rows((run: number) =>
      ws
        .select({
          kind: "select",
          table: "emitted",
          where: [equal("run", run)],
          order: [["stream", "asc"]],
          lock: "none",
        })
        .map(({ stream, count }) => ({ stream, count })),
    ),
    saveEmittedCount: effect((run: number, stream: string, count: number) => {
      const row = ws.get("emitted", "none", run, stream);
      if (row === undefined) ws.insert("emitted", { run, stream, count });
      else ws.update("emitted", row, { count: Math.max(row.count, count) });
    }),

    hasOutgoing: exists((line: number) => ws.select(lastOfLine(lock("outbox"), line)).length > 0),
    insertOutgoing: effect(
      (line: number, run: number, seq: number, destination: string, state: number, now: number) => {
        const fresh = { available_at: now, sent_at: now, attempt: 0, token: null, worker: null };
        ws.insert("outbox", { line, run, seq, destination, state, ...fresh });
      },
    ),
    nextOutgoing: rows((destination: string, now: number, limit: number) =>
      ws
        .select(outgoingTo(lock("outbox"), destination, now, limit))
        .map(({ line, run, seq, attempt }) => ({ line, run, seq, destination, attempt })),
    ),
    outgoingDueAt: one((destination: string, now: number) => ({
      at: ws.select(outgoingAfter(destination, now))[0]?.available_at ?? null,
    })),
    claimOutgoing: effect((line: number, run: number, seq: number, token: string, worker: number) => {
      const row = ws.get("outbox", lock("outbox"), line, run, seq);
      if (row !== undefined) ws.update("outbox", row, { state: OutboxState.leased, token, worker });
    }),
    deleteOutgoing: change((line: number, run: number, seq: number, token: string) => {
      const row = held(line, run, seq, token);
      if (row === undefined) return 0;
      ws.remove("outbox", row);
      return 1;
    }),
    promoteOutgoing: change((line: number, now: number) => {
      const [row] = ws.select(firstOfLine(lock("outbox"), line), 2);
      if (row === undefined) return 0;
      ws.update("outbox", row, { state: OutboxState.next, available_at: now });
      return 1;
    }),
    returnOutgoing: change((line: number, run: number, seq: number, token: string, attempt: number, at: number) => {
      const row = held(line, run, seq, token);
      if (row === undefined) return 0;
      ws.update("outbox", row, { state: OutboxState.next, token: null, worker: null, attempt, available_at: at });
      return 1;
    }),
    returnWorkerOutgoing: change((worker: number) => {
      const leased = leasedOutgoing(worker);
      for (const row of leased) ws.update("outbox", row, { state: OutboxState.next, token: null, worker: null });
      return leased.length;
    }),
    takeOverOutgoing: change((now: number, worker: number) => {
      const leased = leasedOutgoing(worker);
      for (const row of leased) {
        const { attempt } = row;
        // Backoff: a handler that crashes its worker is called less and less often.
        const at = now + Math.min(60_000, 1_000 * 2 ** Math.min(attempt, 6));
        ws.update("outbox", row, {
          state: OutboxState.next,
          token: null,
          worker: null,
          attempt: attempt + 1,
          available_at: at,
        });
      }
      return leased.length;
    }),
    countOutgoing: rows(() => {
      const counted = {
        kind: "count",
        table: "outbox",
        by: ["destination"],
        where: [some("destination")],
        least: "sent_at",
        most: "attempt",
      } as const;
      const { least: _, most: __, ...plain } = counted;
      const failed = { ...plain, where: [{ column: "attempt", is: ">", value: 0 }] } as const;
      ws.require(() => {
        ws.prefetch(counted);
        ws.prefetch(failed);
      });
      const failing = new Map(ws.counts(failed).map(({ destination, count }) => [destination, count]));
      return ws.counts(counted).map(({ destination, count, least, most }) => ({
        destination,
        pending: count,
        failing: failing.get(destination!) ?? 0,
        attempts: most,
        oldestAt: least,
      }));
    }),
  };

  function leasedOutgoing(worker: number): Outgoing[] {
    const where = [fixed("state", OutboxState.leased), equal("worker", worker)];
    return ws.select({ kind: "select", table: "outbox", where, lock: lock("outbox") });
  }
}
