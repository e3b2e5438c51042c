// run.update: a message with an answer. The request goes to the run's inbox; the run's code writes the answer to the
// journal, where the caller reads it, in any process.

import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import {
  errorOf,
  decodeData,
  hasEnded,
  parse,
  type Arrival,
  type Entry,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import { checkSignal, unlessAborted } from "./abort.ts";
import type { UpdateOptions } from "./api.ts";
import { stopOf } from "./run-info.ts";
import { getPort, send, type RunTarget } from "./run-messages.ts";
import { RunWatch } from "./run-watch.ts";

const PAGE = 500;

type GetRecord = (generation?: number) => Promise<RunRecord>;

/** After an abort the request stays in the inbox: only the wait for its answer ends. */
export async function updateRun(
  target: RunTarget,
  getRecord: GetRecord,
  name: string,
  given: unknown,
  options: UpdateOptions = {},
): Promise<unknown> {
  getPort(target.body, name, "update");
  checkOptionNames(options, ["dedupId", "signal"], `update ${name}`);
  const signal = checkSignal(options.signal, `update ${name}`);
  signal?.throwIfAborted();
  return unlessAborted(signal, requestUpdate(target, getRecord, name, given, options));
}

async function requestUpdate(
  target: RunTarget,
  getRecord: GetRecord,
  name: string,
  given: unknown,
  { dedupId, signal }: UpdateOptions,
): Promise<unknown> {
  const { host, body } = target;
  const { schema } = getPort(body, name, "update");
  const id = dedupId === undefined ? host.newId() : checkName(dedupId, "dedupId");
  const args = await parse(schema, given, `update ${name} of ${body.name}`);
  const data = entryData.updateRequestedData(
    id,
    name,
    entryData.encodeNamed(`What update ${name} is asked with`, args, host.limits),
  );
  const record = await getRecord();
  const command = entryData.updateCommand(id);
  const arrival = { type: "UpdateRequested", target: id, data } as const;
  const isNew = dedupId === undefined ? await send(target, arrival) : await sendOnce(target, arrival, id);
  const earlier = isNew ? undefined : await findEarlier(host.store, record, command);
  // An earlier request may have been answered before this call, and the run may have ended since.
  const from = dedupId === undefined ? record.head : 0;
  const answer = earlier ?? (await waitForAnswer(target, getRecord, command, record, from, signal));
  if (answer.type === "UpdateCompleted") return decodeData(answer.type, answer.data).result;
  throw errorOf(decodeData("UpdateFailed", answer.data));
}

/** False when the same request was made before, or the run has ended. */
async function sendOnce(target: RunTarget, arrival: Arrival, id: string): Promise<boolean> {
  try {
    return await send(target, arrival, { dedupId: `update\u0001${id}` });
  } catch (error) {
    if (error instanceof RepriseError && error.code === "RUN_ENDED") return false;
    throw error;
  }
}

/** The answer that an earlier generation gave. */
async function findEarlier(store: Store, { id, generation }: RunRecord, command: string): Promise<Entry | undefined> {
  for (let before = generation - 1; before >= 0; before -= 1) {
    const record = await store.findRun(id, before);
    if (record === undefined) return undefined;
    const { answer } = await findAnswer(store, { run: record.run, after: 0 }, command);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Follows the run from one generation to the next: any of them may give the answer. */
async function waitForAnswer(
  { host, id }: RunTarget,
  getRecord: GetRecord,
  command: string,
  { run, generation: first }: RunRecord,
  from: number,
  signal: AbortSignal | undefined,
): Promise<Entry> {
  using watch = new RunWatch(host.watchers, id, signal);
  for (let position = { run, after: from }, generation = first, times = host.timesRolledBack(); ;) {
    host.checkOpen();
    signal?.throwIfAborted();
    const changed = watch.next();
    if (times !== host.timesRolledBack()) {
      times = host.timesRolledBack();
      // Entries read so far may no longer exist, and the answer may come at an earlier position.
      position = { run: position.run, after: 0 };
      if (!(await isRequested(host.store, position.run, command))) throw lostRequest(id);
    }
    // Before the journal: when the record says that the run has ended, the journal is complete.
    const record = await getRecord();
    const found = await findAnswer(host.store, position, command);
    if (found.answer !== undefined) return found.answer;
    position = found.position;
    if (record.generation > generation) {
      generation += 1;
      position = { run: (await getRecord(generation)).run, after: 0 };
      continue;
    }
    if (hasEnded(record.status))
      throw new RepriseError("RUN_ENDED", `Run ${id} has ended (${record.status}) without an answer to the update.`);
    const stopped = stopOf(record);
    if (stopped !== undefined) throw host.redaction.error(stopped);
    await changed;
  }
}

/** The request is in the inbox, or was taken from there into the journal. */
async function isRequested(store: Store, run: RunNumber, command: string): Promise<boolean> {
  const inbox = await store.readInbox(run, 0);
  if (inbox.some(({ type, target }) => type === "UpdateRequested" && entryData.updateCommand(target) === command))
    return true;
  for (let after = 0; ;) {
    const page = await store.readJournal(run, after, PAGE);
    if (page.some((entry) => entry.type === "UpdateRequested" && entry.command === command)) return true;
    if (page.length < PAGE) return false;
    after = page.at(-1)!.seq;
  }
}

function lostRequest(id: string): RepriseError {
  return new RepriseError(
    "STORE_ROLLED_BACK",
    `The update of run ${id} is lost: the database went back to a state before it was requested. Request it again, with the same dedupId if it had one.`,
    { details: { run: id } },
  );
}

interface JournalPosition {
  readonly run: RunNumber;
  readonly after: number;
}

async function findAnswer(
  store: Store,
  { run, after }: JournalPosition,
  command: string,
): Promise<{ readonly answer?: Entry; readonly position: JournalPosition }> {
  for (;;) {
    const page = await store.readJournal(run, after, PAGE);
    const answer = page.find(
      (entry) => entry.command === command && (entry.type === "UpdateCompleted" || entry.type === "UpdateFailed"),
    );
    if (answer !== undefined) return { answer, position: { run, after } };
    after = page.at(-1)?.seq ?? after;
    if (page.length < PAGE) return { position: { run, after } };
  }
}
