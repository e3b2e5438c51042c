// Words about what leaves a run: chunks of streams, and messages of the outbox.

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
import type { RowOf } from "./tables.ts";
import { change, is, just, one, rows, type Speech } from "./word.ts";

type Outgoing = RowOf<"outbox">;

export function streamWords({ ws, lock }: Speech) {
  const held = (line: number, run: number, seq: number, token: string): Outgoing | undefined => {
    const row = ws.get("outbox", lock("outbox"), line, run, seq);
    return row?.token === token ? row : undefined;
  };

  return {
    insertChunk: just(
      (run: number, stream: string, position: number, data: string) =>
        void ws.insert("chunks", { run, stream, position, data }),
    ),
    lastChunk: one((run: number, stream: string) => ({
      last: ws.select(lastChunkOf(run, stream))[0]?.position ?? null,
    })),
    chunksAfter: rows((run: number, stream: string, after: number, limit: number) =>
      ws
        .select({
          ask: "select",
          table: "chunks",
          where: [equal("run", run), equal("stream", stream), { column: "position", is: ">", value: after }],
          order: [["position", "asc"]],
          ...atMost(limit),
          lock: "none",
        })
        .map(({ position, data }) => ({ offset: position, data })),
    ),
    emitted: one((run: number, stream: string) => {
      const row = ws.get("emitted", "none", run, stream);
      return row && { count: row.count };
    }),
    emittedByStream: rows((run: number) =>
      ws
        .select({
          ask: "select",
          table: "emitted",
          where: [equal("run", run)],
          order: [["stream", "asc"]],
          lock: "none",
        })
        .map(({ stream, count }) => ({ stream, count })),
    ),
    noteEmitted: just((run: number, stream: string, count: number) => {
      const row = ws.get("emitted", "none", run, stream);
      if (row === undefined) ws.insert("emitted", { run, stream, count });
      else ws.update("emitted", row, { count: Math.max(row.count, count) });
    }),

    hasMessages: is((line: number) => ws.select(lastOfLine(lock("outbox"), line)).length > 0),
    insertOutgoing: just((line: number, run: number, seq: number, destination: string, state: number, now: number) => {
      const fresh = { available_at: now, sent_at: now, attempt: 0, token: null, worker: null };
      ws.insert("outbox", { line, run, seq, destination, state, ...fresh });
    }),
    nextOutgoing: rows((destination: string, now: number, limit: number) =>
      ws
        .select(outgoingTo(lock("outbox"), destination, now, limit))
        .map(({ line, run, seq, attempt }) => ({ line, run, seq, destination, attempt })),
    ),
    outgoingDueAt: one((destination: string, now: number) => ({
      at: ws.select(outgoingAfter(destination, now))[0]?.available_at ?? null,
    })),
    claimOutgoing: just((line: number, run: number, seq: number, token: string, worker: number) => {
      const row = ws.get("outbox", lock("outbox"), line, run, seq);
      if (row !== undefined) ws.update("outbox", row, { state: 2, token, worker });
    }),
    dropOutgoing: change((line: number, run: number, seq: number, token: string) => {
      const row = held(line, run, seq, token);
      if (row === undefined) return 0;
      ws.remove("outbox", row);
      return 1;
    }),
    promoteOutgoing: change((line: number, now: number) => {
      const [row] = ws.select(firstOfLine(lock("outbox"), line), 2);
      if (row === undefined) return 0;
      ws.update("outbox", row, { state: 1, available_at: now });
      return 1;
    }),
    returnOutgoing: change((line: number, run: number, seq: number, token: string, attempt: number, at: number) => {
      const row = held(line, run, seq, token);
      if (row === undefined) return 0;
      ws.update("outbox", row, { state: 1, token: null, worker: null, attempt, available_at: at });
      return 1;
    }),
    freeOutgoing: change((worker: number) => {
      const leased = leasedOutgoing(worker);
      for (const row of leased) ws.update("outbox", row, { state: 1, token: null, worker: null });
      return leased.length;
    }),
    takeOverOutgoing: change((now: number, worker: number) => {
      const leased = leasedOutgoing(worker);
      for (const row of leased) {
        const { attempt } = row;
        // A handler that kills its worker does so ever more slowly.
        const at = now + Math.min(60_000, 1_000 * 2 ** Math.min(attempt, 6));
        ws.update("outbox", row, { state: 1, token: null, worker: null, attempt: attempt + 1, available_at: at });
      }
      return leased.length;
    }),
    countOutgoing: rows(() => {
      const counted = {
        ask: "count",
        table: "outbox",
        by: ["destination"],
        where: [some("destination")],
        least: "sent_at",
        most: "attempt",
      } as const;
      const { least: _, most: __, ...plain } = counted;
      const failed = { ...plain, where: [{ column: "attempt", is: ">", value: 0 }] } as const;
      ws.need(() => {
        ws.want(counted);
        ws.want(failed);
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
    const where = [fixed("state", 2), equal("worker", worker)];
    return ws.select({ ask: "select", table: "outbox", where, lock: lock("outbox") });
  }
}
