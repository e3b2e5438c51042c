// run.update: a message that is answered. The request goes to the inbox; the answer is an entry of the journal, and whoever
// waits for it, in whatever process, reads it there.

import { checkName, checkOptionNames, decode, RepriseError } from "../base/index.ts";
import {
  hasEnded,
  parse,
  type Arrival,
  type Entry,
  type RunNumber,
  type RunRecord,
  type Store,
} from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { UpdateOptions } from "./api.ts";
import { News } from "./news.ts";
import { stopOf } from "./run-info.ts";
import { getPort, send, type Target } from "./run-messages.ts";

const PAGE = 500;

export async function updateRun(
  target: Target,
  getRecord: (generation?: number) => Promise<RunRecord>,
  name: string,
  given: unknown,
  options: UpdateOptions = {},
): Promise<unknown> {
  const { host, body } = target;
  const { schema } = getPort(body, name, "update");
  checkOptionNames(options, ["dedupId"], `update ${name}`);
  const { dedupId } = options;
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
  // A request that was made before may have been answered before, also when the run has ended since.
  const from = dedupId === undefined ? record.head : 0;
  const answer = earlier ?? (await waitForAnswer(target, getRecord, command, record, from));
  const said = decode(answer.data) as { result?: unknown };
  if (answer.type === "UpdateCompleted") return said.result;
  throw entryData.errorOf(said);
}

/** False when the request was made before, or comes too late to be made. */
async function sendOnce(target: Target, arrival: Arrival, id: string): Promise<boolean> {
  try {
    return await send(target, arrival, { dedupId: `update\u0001${id}` });
  } catch (error) {
    if (error instanceof RepriseError && error.code === "RUN_ENDED") return false;
    throw error;
  }
}

/** The answer a generation before this one gave. */
async function findEarlier(store: Store, { id, generation }: RunRecord, command: string): Promise<Entry | undefined> {
  for (let before = generation - 1; before >= 0; before -= 1) {
    const record = await store.findRun(id, before);
    if (record === undefined) return undefined;
    const { answer } = await search(store, { run: record.run, after: 0 }, command);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** Follows the run from one generation to the next: each of them may have given the answer. */
async function waitForAnswer(
  { host, id }: Target,
  getRecord: (generation?: number) => Promise<RunRecord>,
  command: string,
  { run, generation: first }: RunRecord,
  from: number,
): Promise<Entry> {
  const news = new News();
  const leave = host.watchers.add(id, () => news.tell());
  try {
    for (let place = { run, after: from }, generation = first, times = host.timesRolledBack(); ;) {
      host.checkOpen();
      const moved = news.next();
      if (times !== host.timesRolledBack()) {
        times = host.timesRolledBack();
        // What was read may be gone, and the answer may come at an earlier place.
        place = { run: place.run, after: 0 };
        if (!(await isRequested(host.store, place.run, command))) throw lostRequest(id);
      }
      // Before the journal: what an ended run says is in it by now.
      const record = await getRecord();
      const found = await search(host.store, place, command);
      if (found.answer !== undefined) return found.answer;
      place = found.place;
      if (record.generation > generation) {
        generation += 1;
        place = { run: (await getRecord(generation)).run, after: 0 };
        continue;
      }
      if (hasEnded(record.status))
        throw new RepriseError("RUN_ENDED", `Run ${id} has ended (${record.status}) without an answer to the update.`);
      const stopped = stopOf(record);
      if (stopped !== undefined) throw host.redaction.error(stopped);
      await moved;
    }
  } finally {
    leave();
  }
}

/** In the inbox, or taken from there into the journal. */
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

interface Place {
  readonly run: RunNumber;
  readonly after: number;
}

async function search(
  store: Store,
  { run, after }: Place,
  command: string,
): Promise<{ readonly answer?: Entry; readonly place: Place }> {
  for (;;) {
    const page = await store.readJournal(run, after, PAGE);
    const answer = page.find(
      (entry) => entry.command === command && (entry.type === "UpdateCompleted" || entry.type === "UpdateFailed"),
    );
    if (answer !== undefined) return { answer, place: { run, after } };
    after = page.at(-1)?.seq ?? after;
    if (page.length < PAGE) return { place: { run, after } };
  }
}
