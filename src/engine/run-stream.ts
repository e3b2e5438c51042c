// run.stream: the chunks of a stream, from an offset on, those to come included.

import { decode, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { News } from "./news.ts";
import { getPort, type Target } from "./run-messages.ts";
import { goneError } from "./waiters.ts";

export interface StreamChunk<T> {
  readonly offset: number;
  readonly value: T;
}

const PAGE = 500;

/** Ends when the run has ended and everything was read; a stopped run may go on, so its streams do not end. */
export function readRunStream(
  target: Target,
  getRecord: () => Promise<RunRecord>,
  name: string,
  options: { readonly after?: number } = {},
): AsyncIterable<StreamChunk<never>> {
  getPort(target.body, name, "stream");
  const { after = 0 } = options;
  if (!Number.isSafeInteger(after) || after < 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `stream: expected an offset of 0 or more as \`after\`, got ${String(after)}. Give the offset of the last chunk you have.`,
    );
  return {
    [Symbol.asyncIterator]: () => {
      const news = new News();
      const read = chunks(target, getRecord, name, after, news);
      return {
        next: () => read.next(),
        // A reader that leaves while it waits would otherwise be kept until the run moves.
        return: () => {
          news.close();
          return read.return();
        },
      };
    },
  };
}

async function* chunks(
  { host, id }: Target,
  getRecord: () => Promise<RunRecord>,
  name: string,
  from: number,
  news: News,
): AsyncGenerator<StreamChunk<never>, void, undefined> {
  const leave = host.watchers.add(id, () => news.tell());
  try {
    const { run, generation } = await getRecord();
    const before = host.timesRolledBack();
    for (let after = from, head = 0; !news.isClosed;) {
      host.checkOpen();
      // Asked before reading: what comes in between is read, or wakes.
      const moved = news.next();
      const page = await host.store.readStream(run, name, after, PAGE);
      if (host.timesRolledBack() !== before) throw otherHistory(id, name);
      for (const { offset, data } of page) {
        yield { offset, value: decode(data) as never };
        after = offset;
      }
      if (page.length > 0) continue;
      const record = await getRecord();
      if (record.generation === generation && record.run !== run) throw goneError(id, true);
      if (record.run === run && record.head < head) throw otherHistory(id, name);
      if (record.run === run) head = record.head;
      if (!hasEnded(record.status)) await moved;
      // The end came with its last chunks, perhaps after the page was read.
      else if ((await host.store.readStream(run, name, after, 1)).length === 0) return;
    }
  } finally {
    leave();
  }
}

/** Chunks of a history that is lost and of the one that followed must not be taken for one stream. */
function otherHistory(id: string, name: string): RepriseError {
  return new RepriseError(
    "STORE_ROLLED_BACK",
    `Stream ${name} of run ${id}: the database went back to an earlier state while it was read, so chunks that were read may be gone. Discard them and read the stream again: run.stream(${JSON.stringify(name)}).`,
    { details: { run: id, stream: name } },
  );
}
