// Read provenance: the runs of a family with their steps, from a store.

import { sha256Hex } from "../base/index.ts";
import { decodeData, forkOriginOf, stableCommandOf, type RunRecord, type Store } from "../kernel/index.ts";
import { plainKey, type KeyOf } from "./blind.ts";
import { deriveClaim, readSteps, type Claim } from "./claim.ts";
import { readFamily } from "./family.ts";
import { storeJournal } from "./journal-source.ts";
import type { ProvenanceRun } from "./provenance.ts";
import type { StepRecord } from "./steps.ts";

/** The family of these runs, in order. Runs that have not started are left out: they have done nothing. */
export async function readProvenance(store: Store, ids: readonly string[]): Promise<readonly ProvenanceRun[]> {
  const records: RunRecord[] = [];
  for (const { id, generation, head } of await readFamily(store, ids)) {
    const record = head === 0 ? undefined : await store.findRun(id, generation);
    if (record !== undefined) records.push(record);
  }
  const byNumber = new Map(records.map((record) => [record.run, record]));
  const runs: ProvenanceRun[] = [];
  for (const record of records) {
    const { claim, steps, started } = await readClaimed(store, record, plainKey);
    const parent = record.parent === undefined ? undefined : byNumber.get(record.parent);
    const fork = forkOriginOf(decodeData("RunStarted", started));
    runs.push({
      id: record.id,
      generation: record.generation,
      definition: record.definition,
      claim: claim.key,
      ...keysOf(claim),
      steps,
      parent: parent && {
        run: parent.id,
        generation: parent.generation,
        command: stableCommandOf(record.parentCommand ?? ""),
      },
      fork: fork && { run: fork.run, command: `Step(${fork.step})` },
    });
  }
  return runs;
}

/** One run with the checksums of its values, for an export. */
export interface ExportedRun {
  readonly record: RunRecord;
  readonly claim: Claim;
  /** The keys of its input, output and error. */
  readonly input?: string | undefined;
  readonly output?: string | undefined;
  readonly error?: string | undefined;
  readonly steps: readonly StepRecord[];
  /** By key: the SHA-256 of a value's text. Empty for blind keys: a checksum of a short value can be guessed. */
  readonly checksums: ReadonlyMap<string, string>;
}

/** `keyOf`: `blindKey` for a store with a codec. */
export async function readExported(store: Store, record: RunRecord, keyOf: KeyOf = plainKey): Promise<ExportedRun> {
  const checksums = new Map<string, string>();
  const noting: KeyOf = (command, field, text) => {
    const key = keyOf(command, field, text);
    checksums.set(key, sha256Hex(text));
    return key;
  };
  const { claim, steps } = await readClaimed(store, record, keyOf, keyOf === plainKey ? noting : keyOf);
  return { record, claim, ...keysOf(claim), steps, checksums };
}

async function readClaimed(
  store: Store,
  record: RunRecord,
  keyOf: KeyOf,
  noting = keyOf,
): Promise<{ readonly claim: Claim; readonly steps: readonly StepRecord[]; readonly started: string }> {
  const journal = storeJournal(store, record);
  const steps: StepRecord[] = [];
  for await (const step of readSteps(record, journal, noting)) steps.push(step);
  const [first] = await store.readJournal(record.run, 0, 1);
  return { claim: await deriveClaim(record, journal, keyOf), steps, started: first?.data ?? "{}" };
}

function keysOf({ text }: Claim): Pick<ProvenanceRun, "input" | "output" | "error"> {
  const { input, output, error } = JSON.parse(text) as Pick<ProvenanceRun, "input" | "output" | "error">;
  return { input, output, error };
}
