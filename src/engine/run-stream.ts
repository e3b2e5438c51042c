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
  const { after = 0 } = options;
  if (!Number.isSafeInteger(after) || after < 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `stream: expected an offset of 0 or more as \`after\`, got ${String(after)}. Pass the offset of the last chunk you have read.`,
    );
  const signal = checkSignal(options.signal, "stream");
  return new AbortableGenerator(signal, (left) => readChunks(target, getRecord, name, after, left));
}

async function* readChunks(
  { host, id }: RunTarget,
  getRecord: () => Promise<RunRecord>,
  name: string,
  from: number,
  left: AbortSignal,
): AsyncGenerator<StreamChunk<never>, void, undefined> {
  using watch = new RunWatch(host.watchers, id, left);
  const { run, generation } = await getRecord();
  const before = host.timesRolledBack();
  for (let after = from, head = 0; !left.aborted;) {
    host.checkOpen();
    const changed = watch.next();
    const page = await host.store.readStream(run, name, after, PAGE);
    if (host.timesRolledBack() !== before) throw rolledBackError(id, name);
    for (const chunk of page) {
      yield frameOf(chunk);
      after = chunk.offset;
    }
    if (page.length > 0) continue;
    const record = await getRecord();
    if (record.generation === generation && record.run !== run) throw lostRunError(id, true);
    if (record.run === run && record.head < head) throw rolledBackError(id, name);
    if (record.run === run) head = record.head;
    if (!hasEnded(record.status) && host.store.mirrorOf === undefined) await changed;
    // The commit that ended the run may have added chunks after the page was read.
    else if ((await host.store.readStream(run, name, after, 1)).length === 0) return;
  }
}

function frameOf({ offset, data, step = "", execution = 1, reset }: Chunk): StreamChunk<never> {
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
