// Family: the runs that one run belongs to, to be bundled together.
//
// family.F1. The children of a run and theirs, and of all these the parents and the origins of forks. Not the other children of those.
// family.F2. By creation, then id, then generation: the same order each time, and an origin before what came of it.

import { commandForkOriginOf, decodeData, forkOriginOf, type RunRecord, type Store } from "../kernel/index.ts";

/** One generation of a run. */
export interface FamilyMember {
  readonly id: string;
  readonly generation: number;
  readonly createdAt: number;
  /** The number of its entries. */
  readonly head: number;
}

const PAGE = 500;

/** family.F1. Every generation of the members, in the order of family.F2. */
export async function readFamily(store: Store, ids: readonly string[]): Promise<readonly FamilyMember[]> {
  const members = new Map<string, readonly FamilyMember[]>();
  const above: string[] = [];
  const add = async (id: string): Promise<boolean> => {
    if (members.has(id)) return false;
    const generations = await readGenerations(store, id);
    members.set(id, generations.map(memberOf));
    for (const record of generations) above.push(...(await originsOf(store, record)));
    return generations.length > 0;
  };
  for (const open = [...ids]; open.length > 0;) {
    const id = open.shift()!;
    if (await add(id)) open.push(...(await childrenOf(store, id)));
  }
  for (let id = above.pop(); id !== undefined; id = above.pop()) await add(id);
  return [...members.values()].flat().toSorted(inOrder);
}

/** Every generation of a run that the store has, oldest first. */
export async function readGenerations(store: Store, id: string): Promise<readonly RunRecord[]> {
  const generations: RunRecord[] = [];
  for (let record = await store.findRun(id); record !== undefined;) {
    generations.push(record);
    record = record.generation === 0 ? undefined : await store.findRun(id, record.generation - 1);
  }
  return generations.toReversed();
}

export function memberOf({ id, generation, createdAt, head }: RunRecord): FamilyMember {
  return { id, generation, createdAt, head };
}

/** family.F2 */
function inOrder(a: FamilyMember, b: FamilyMember): number {
  const byId = Buffer.compare(Buffer.from(a.id), Buffer.from(b.id));
  return a.createdAt - b.createdAt || byId || a.generation - b.generation;
}

async function childrenOf(store: Store, parent: string): Promise<readonly string[]> {
  const ids = new Set<string>();
  for (let before: number | undefined; ;) {
    const page = await store.listRuns({ parent, limit: PAGE, ...(before !== undefined && { before }) });
    for (const { id } of page) ids.add(id);
    if (page.length < PAGE) return [...ids];
    before = page.at(-1)?.run;
  }
}

/** The ids of the parent and of the run that it was forked from. */
async function originsOf(store: Store, { run, parent, head }: RunRecord): Promise<readonly string[]> {
  const [found] = parent === undefined ? [] : await store.listRuns({ before: parent + 1, limit: 1 });
  const [first] = head === 0 ? [] : await store.readJournal(run, 0, 1);
  const started = first && decodeData("RunStarted", first.data);
  const forked = started && (forkOriginOf(started) ?? commandForkOriginOf(started));
  return [...(found?.run === parent && found !== undefined ? [found.id] : []), ...(forked ? [forked.run] : [])];
}
