// run.update: a message that is answered. The request goes to the inbox; the answer is an entry of the journal, and whoever
// waits for it, in whatever process, reads it there.

import { checkName, checkOptionNames, decode, RepriseError } from "../base/index.ts";
import { hasEnded, parse, type Entry, type RunNumber, type RunRecord, type Store } from "../kernel/index.ts";
import { entryData } from "../workflow/index.ts";
import type { UpdateOptions } from "./api.ts";
import { News } from "./news.ts";
import { unlessEnded } from "./run-control.ts";
import { stopOf } from "./run-info.ts";
import { getPort, send, type Target } from "./run-messages.ts";

const PAGE = 500;

export async function updateRun(
  target: Target,
  getRecord: () => Promise<RunRecord>,
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
  const { run, head } = await getRecord();
  // A request that was made before may have been answered before, also when the run has ended since.
  const isFirst = dedupId === undefined;
  const arrival = { type: "UpdateRequested", target: id, data } as const;
  if (isFirst) await send(target, arrival);
  else await unlessEnded(send(target, arrival, { dedupId: `update\u0001${id}` }));
  const answer = await waitForAnswer(target, getRecord, entryData.updateCommand(id), run, isFirst ? head : 0);
  const said = decode(answer.data) as { result?: unknown };
  if (answer.type === "UpdateCompleted") return said.result;
  throw entryData.errorOf(said);
}

async function waitForAnswer(
  { host, id }: Target,
  getRecord: () => Promise<RunRecord>,
  command: string,
  first: RunNumber,
  from: number,
): Promise<Entry> {
  const news = new News();
  const leave = host.watchers.add(id, () => news.tell());
  try {
    for (let place = { run: first, after: from }; ;) {
      host.checkOpen();
      const moved = news.next();
      // Before the journal: what an ended run says is in it by now.
      const record = await getRecord();
      const found = await search(host.store, place, command);
      if (found.answer !== undefined) return found.answer;
      place = record.run === place.run ? found.place : { run: record.run, after: 0 };
      if (place.after === 0 && record.run !== found.place.run) continue;
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
