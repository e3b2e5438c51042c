// run.stream: the chunks of a stream from an offset on, including those to come.

import { checkOptionNames, decode, RepriseError } from "../base/index.ts";
import { hasEnded, type Chunk, type RunRecord } from "../kernel/index.ts";
import { AbortableGenerator, checkSignal } from "./abort.ts";
import type { StreamChunk, StreamOptions } from "./api.ts";
import { lostRunError } from "./result-waiters.ts";
import { getPort, type RunTarget } from "./run-messages.ts";
import { RunWatch } from "./run-watch.ts";

const PAGE = 500;

/** Ends when the run has ended and every chunk was read. A stopped run may be resumed, so its streams stay open. */
export function readRunStream(
  target: RunTarget,
  getRecord: () => Promise<RunRecord>,
  name: string,
  options: StreamOptions = {},
): AsyncGenerator<StreamChunk<never>, void, undefined> {
  getPort(target.body, name, "stream");
  checkOptionNames(options, ["after", "signal"], `stream ${name}`);
  const { after, signal } = checkStreamOptions(options);
  return new AbortableGenerator(signal, (left) => readFrames(readPages(target, getRecord, name, after, left)));
}

/** `readRunStream` without the definition of the run: raw chunks, page by page. */
export function readStreamPages(
  target: StreamTarget,
  getRecord: () => Promise<RunRecord>,
  name: string,
  options: StreamOptions & { readonly pageSize?: number },
): AsyncGenerator<readonly Chunk[], void, undefined> {
  const { after, signal } = checkStreamOptions(options);
  return new AbortableGenerator(signal, (left) => readPages(target, getRecord, name, after, left, options.pageSize));
}

type StreamTarget = Pick<RunTarget, "id"> & {
  readonly host: Pick<RunTarget["host"], "checkOpen" | "store" | "timesRolledBack" | "watchers">;
};

function checkStreamOptions({ after = 0, signal }: StreamOptions): {
  readonly after: number;
  readonly signal: AbortSignal | undefined;
} {
  if (!Number.isSafeInteger(after) || after < 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `stream: expected an offset of 0 or more as \`after\`, got ${String(after)}. Pass the offset of the last chunk you have read.`,
    );
  return { after, signal: checkSignal(signal, "stream") };
}

async function* readFrames(
  pages: AsyncGenerator<readonly Chunk[], void, undefined>,
): AsyncGenerator<StreamChunk<never>, void, undefined> {
  for await (const page of pages) for (const chunk of page) yield frameOf(chunk);
}

async function* readPages(
  { host, id }: StreamTarget,
  getRecord: () => Promise<RunRecord>,
  name: string,
  from: number,
  left: AbortSignal,
  pageSize = PAGE,
): AsyncGenerator<readonly Chunk[], void, undefined> {
  using watch = new RunWatch(host.watchers, id, left);
  const { run, generation } = await getRecord();
  const before = host.timesRolledBack();
  for (let after = from, head = 0; !left.aborted;) {
    host.checkOpen();
    const changed = watch.next();
    const page = await host.store.readStream(run, name, after, pageSize);
    if (host.timesRolledBack() !== before) throw rolledBackError(id, name);
    if (page.length > 0) {
      yield page;
      after = page.at(-1)!.offset;
      continue;
    }
    const record = await getRecord();
    if (record.generation === generation && record.run !== run) throw lostRunError(id, true);
    if (record.run === run && record.head < head) throw rolledBackError(id, name);
    if (record.run === run) head = record.head;
    if (!hasEnded(record.status) && host.store.mirrorOf === undefined) await changed;
    // The commit that ended the run may have added chunks after the page was read.
    else if ((await host.store.readStream(run, name, after, 1)).length === 0) return;
  }
}

export function frameOf({ offset, data, step = "", execution = 1, reset }: Chunk): StreamChunk<never> {
  if (reset === true) return { offset, reset: { step, execution } };
  const value = decode(data) as never;
  return step === "" ? { offset, value } : { offset, value, step, execution };
}

/** Chunks of a lost history and of the one that replaced it must not be mixed in one stream. */
function rolledBackError(id: string, name: string): RepriseError {
  return new RepriseError(
    "STORE_ROLLED_BACK",
    `Stream ${name} of run ${id}: the database went back to an earlier state during the read, so chunks you have read may no longer exist. Discard them and read the stream again: run.stream(${JSON.stringify(name)}).`,
    { details: { run: id, stream: name } },
  );
}
