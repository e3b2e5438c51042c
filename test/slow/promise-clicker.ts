// A process of people who click: resolves every open promise twice, each person with an answer of its own.

import { createClient, RepriseError, type Client, type OpenPromiseInfo } from "reprise";
import { approvals } from "./promise-definitions.ts";

export interface Work {
  readonly store: string;
  readonly person: string;
}

/** What a click is answered: the name of the person whose answer counts. */
export interface Click {
  readonly promise: string;
  readonly winner: string;
}

/** As many people click at once in this process. */
const HANDS = 20;

async function click(client: Client, { runId, key }: OpenPromiseInfo, person: string): Promise<Click> {
  const promise = `${runId} ${key}`;
  const run = client.get(approvals, runId);
  try {
    await run.resolve("approve", { by: person }, { key: key!, by: person });
    return { promise, winner: person };
  } catch (error) {
    if (!(error instanceof RepriseError && error.code === "PROMISE_ALREADY_RESOLVED")) throw error;
    return { promise, winner: (error.details as { by: string }).by };
  }
}

/** Every process starts at another place of the list, so that the processes meet all over it. */
function rotated<T>(list: readonly T[], part: number): T[] {
  const at = Math.floor(list.length * part);
  return [...list.slice(at), ...list.slice(0, at)];
}

async function clickAll({ store, person }: Work): Promise<Click[]> {
  await using client = await createClient({ store, definitions: [approvals] });
  const open = await Array.fromAsync(client.promises({ name: "approve" }));
  process.send!({ listed: open.length });
  await new Promise((resolve) => void process.once("message", resolve));
  const clicks: Click[] = [];
  const wanted = rotated(open, Number(person.at(-1)) / 4).flatMap((one) => [one, one]);
  const next = wanted.values();
  const hand = async (): Promise<void> => {
    for (const one of next) clicks.push(await click(client, one, person));
  };
  await Promise.all(Array.from({ length: HANDS }, hand));
  return clicks;
}

process.once("message", (work: Work) => {
  void clickAll(work).then(
    (clicks) => process.send!({ clicks }, () => process.disconnect()),
    (error: Error) => process.send!({ error: String(error.stack) }, () => process.exit(1)),
  );
});
