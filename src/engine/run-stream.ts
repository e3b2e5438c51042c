// run.stream: the chunks of a stream, from an offset on, those to come included.

import { decode, RepriseError } from "../base/index.ts";
import { hasEnded, type RunRecord } from "../kernel/index.ts";
import { News } from "./news.ts";
import { getPort, type Target } from "./run-messages.ts";

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
    const { run } = await getRecord();
    for (let after = from; !news.isClosed;) {
      host.checkOpen();
      // Asked before reading: what comes in between is read, or wakes.
      const moved = news.next();
      const page = await host.store.readStream(run, name, after, PAGE);
      for (const { offset, data } of page) {
        yield { offset, value: decode(data) as never };
        after = offset;
      }
      if (page.length > 0) continue;
      if (!hasEnded((await getRecord()).status)) await moved;
      // The end came with its last chunks, perhaps after the page was read.
      else if ((await host.store.readStream(run, name, after, 1)).length === 0) return;
    }
  } finally {
    leave();
  }
}
