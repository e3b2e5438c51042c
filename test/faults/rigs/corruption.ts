// Corruption: rows are changed by hand. The damaged run is reported and blocked; the others continue.

import { isDeepStrictEqual } from "node:util";
import { expectedOf, load } from "../../slow/sigkill/definitions.ts";
import { Fleet } from "../fleet.ts";
import { until, type Rig } from "../rig.ts";
import { ALL, openStore, openSubject, type Subject } from "../subject.ts";
import { openClient } from "../workload.ts";

interface Damage {
  readonly what: string;
  /** The entry that `check` must report. */
  readonly seq: number | undefined;
  do(subject: Subject, run: number): Promise<unknown>;
}

/** Changes one digit of a payload, so that it can still be parsed. */
async function flip(subject: Subject, run: number, seq: number): Promise<void> {
  const journal = subject.table("journal");
  const [row] = await subject.sql(`select data from ${journal} where run = ${run} and seq = ${seq}`);
  const data = row?.["data"];
  const bytes = Buffer.from(typeof data === "string" ? data : (data as Uint8Array));
  const at = bytes.findIndex((byte) => byte >= 0x30 && byte <= 0x38);
  bytes[at]! += 1;
  const hex = bytes.toString("hex");
  const value = {
    sqlite: typeof data === "string" ? `cast(x'${hex}' as text)` : `x'${hex}'`,
    postgres: `'\\x${hex}'::bytea`,
    mysql: `x'${hex}'`,
  };
  await subject.sql(`update ${journal} set data = ${value[subject.kind]} where run = ${run} and seq = ${seq}`);
}

const DAMAGES: readonly Damage[] = [
  { what: "a payload", seq: 3, do: (subject, run) => flip(subject, run, 3) },
  {
    what: "an entry's type",
    seq: 4,
    do: (subject, run) =>
      subject.sql(`update ${subject.table("journal")} set type = 'StateSet' where run = ${run} and seq = 4`),
  },
  {
    what: "an entry that is gone",
    seq: 2,
    do: (subject, run) => subject.sql(`delete from ${subject.table("journal")} where run = ${run} and seq = 2`),
  },
  {
    what: "the head",
    seq: undefined,
    do: (subject, run) => subject.sql(`update ${subject.table("runs")} set head = head + 1 where run = ${run}`),
  },
];

export const corruption: Rig = {
  name: "corruption",
  title: "rows of journals and runs changed by hand",
  shows: "F21",
  stores: ALL,
  tested: ALL,
  rounds: 1,
  async run(world) {
    while (world.more()) {
      await using subject = await openSubject(world.store);
      await using client = await openClient(subject.url);
      const runs = await Promise.all(
        Array.from({ length: DAMAGES.length + 4 }, (_, n) => client.start(load, n, { id: `load-${n}` })),
      );
      const store = await openStore(subject);
      {
        await using fleet = await Fleet.of(1, { url: subject.url });
        // Wait until their journals have everything before the signal they wait for.
        const numbers = await Promise.all(runs.map(async ({ id }) => (await store.findRun(id))!));
        await until(
          "the runs to wait",
          async () =>
            (await store.listRuns({ statuses: ["running"], limit: 1 })).length === 0 &&
            (await Promise.all(numbers.map(({ run }) => store.readJournal(run, 0)))).every((entries) =>
              entries.some(({ type }) => type === "PromiseCreated"),
            ),
        );
        await fleet[Symbol.asyncDispose]();
      }
      for (const [n, damage] of DAMAGES.entries()) {
        await damage.do(subject, (await store.findRun(`load-${n}`))!.run);
        world.tally.add("damaged rows");
      }
      const named = await store.check();
      for (const [n, { what, seq }] of DAMAGES.entries()) {
        const found = named.filter(({ run }) => run === `load-${n}`);
        if (found.length === 0) world.tally.broken(`check does not see ${what}`);
        else if (seq !== undefined && !found.some((problem) => problem.seq === seq))
          world.tally.broken(`check names entry ${found[0]?.seq} for ${what}, not ${seq}`);
        else world.tally.add("named by doctor");
      }
      await using _fleet = await Fleet.of(1, { url: subject.url });
      for (const [n, run] of runs.entries()) await run.resolve("go", n + 1);
      for (const [n, run] of runs.entries()) {
        const answer = await run.result({ timeout: "120 s" }).catch((error: unknown) => error);
        if (n >= DAMAGES.length) {
          if (!isDeepStrictEqual(answer, expectedOf(n, n + 1))) world.tally.lost(`the result of ${run.id}`);
          world.tally.add("acknowledged");
          continue;
        }
        const { status } = await run.info();
        if (status === "blocked") world.tally.add("quarantined");
        else world.tally.broken(`a run with damage (${DAMAGES[n]!.what}) is ${status}`);
      }
      await store.close();
    }
  },
};
