// Journal download: the entries of a run as they are stored, one JSON document per line.

import type { Entry, RunRecord, Store } from "../../kernel/index.ts";
import { summaryOf } from "./run-summary.ts";
import { isoOf } from "./view.ts";

const PAGE = 500;

/** The first line is the run, every other one an entry: payloads in the form of the codec, unchanged and not redacted. */
export function downloadJournal(store: Store, record: RunRecord): Response {
  const encoder = new TextEncoder();
  let after = -1;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (after < 0) {
        after = 0;
        return controller.enqueue(encoder.encode(`${JSON.stringify({ run: summaryOf(record) })}\n`));
      }
      const limit = Math.min(PAGE, record.head - after);
      const page = limit <= 0 ? [] : await store.readJournal(record.run, after, limit);
      if (page.length === 0) return controller.close();
      after = page.at(-1)!.seq;
      controller.enqueue(encoder.encode(page.map(lineOf).join("")));
    },
  });
  const name = `${record.id.replace(/[^\w.-]/g, "_").slice(0, 100)}.jsonl`;
  return new Response(body, {
    headers: {
      "content-type": "application/jsonl",
      "content-disposition": `attachment; filename="${name}"`,
      "cache-control": "no-store",
    },
  });
}

/** As `reprise journal --json` prints it. */
function lineOf({ seq, type, command, at, execution, worker, startedAt, tookMs, data }: Entry): string {
  const fields = {
    seq,
    type,
    command: command === "" ? null : command,
    at: isoOf(at),
    ...(tookMs !== undefined && {
      execution: execution ?? null,
      worker: worker ?? null,
      startedAt: startedAt === undefined ? null : isoOf(startedAt),
      tookMs,
    }),
    ...dataOf(data),
  };
  return `${JSON.stringify(fields)}\n`;
}

/** Damaged data is no JSON: its text is passed on for the repair of the store. */
function dataOf(data: string): { readonly data: unknown } | { readonly damaged: string } {
  try {
    return { data: JSON.parse(data) as unknown };
  } catch {
    return { damaged: data };
  }
}
