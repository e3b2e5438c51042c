// Evaluation copy: the runs of an evaluation, copied into a SQLite file of their own. The store and the bundles are only read.
//
// evaluation-copy.C1. Only runs that have ended are copied: a worker on the copy executes forks and nothing else.
// evaluation-copy.C2. A file with a name of its own (--id) is kept: the same evaluation continues with the copies that it has.

import { existsSync, mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RepriseError, systemClock, systemRandom, systemTimers } from "../base/index.ts";
import { checkRunFilter, type RunFilter } from "../engine/index.ts";
import { EVALUATION_TAG, hasEnded, type Store } from "../kernel/index.ts";
import { Mirror, readMirrorInfo, type CopiedRun } from "../stores/maintenance/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { copies, originOf } from "./import.ts";
import { checkMirrorName, findInMirrors, hasMirror, mirrorUrl } from "./mirrors.ts";
import { openBundle, type OpenBundleOptions } from "./open-bundle.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { payloadCodec } from "./payload-module.ts";
import { familyOf } from "./pull.ts";
import { isBundleFile } from "./verify-bundle.ts";

export interface EvaluationCopy extends AsyncDisposable {
  readonly path: string;
  /** The ids of the selected runs, by definition. Undefined: those of an earlier start of the same evaluation. */
  readonly ids: ReadonlyMap<string, readonly string[]> | undefined;
}

export interface CopyOptions extends GlobalOptions, OpenBundleOptions {
  readonly id?: string;
  readonly key?: readonly string[];
}

/** `targets`: bundles, ids of runs, and mirrors such as `prod/`. Without targets, the filter selects runs of the store. */
export async function copyRuns(
  targets: readonly string[],
  filters: readonly RunFilter[],
  options: CopyOptions,
): Promise<EvaluationCopy> {
  const folder = options.id === undefined ? await mkdtemp(join(tmpdir(), "reprise-eval-")) : evalsFolder(options);
  const path = join(folder, `${options.id === undefined ? "runs" : checkMirrorName(options.id)}.db`);
  const dispose = async (): Promise<void> => {
    if (options.id === undefined) await rm(folder, { recursive: true, force: true });
  };
  try {
    const isReleased = existsSync(path) && readMirrorInfo(path) === undefined;
    const ids = isReleased ? undefined : await fill(path, targets, filters, options);
    return { path, ids, [Symbol.asyncDispose]: dispose };
  } catch (error) {
    await dispose();
    throw error;
  }
}

function evalsFolder(options: CopyOptions): string {
  const folder = join(homeOf(options), "evals");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

async function fill(
  path: string,
  targets: readonly string[],
  filters: readonly RunFilter[],
  options: CopyOptions,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const machine = { clock: systemClock, timers: systemTimers, random: systemRandom, codec: payloadCodec() };
  const mirror = await Mirror.open({ path, name: "eval", ...machine });
  const selected = new Selected();
  try {
    for (const file of targets.filter((target) => isBundleFile(target)))
      await putBundle(mirror, file, selected, options);
    for (const [url, names] of await byStore(targets, filters, options))
      await withStoreToRead(url, async (store) => {
        await mirror.put(families(store, names ?? (await selectIds(store, filters)), selected));
      });
    await mirror.release();
  } finally {
    await mirror.close();
  }
  return selected.ids;
}

class Selected {
  readonly ids = new Map<string, string[]>();

  add({ id, record: { definition } }: CopiedRun): void {
    const known = this.ids.get(definition);
    if (known === undefined) this.ids.set(definition, [id]);
    else if (!known.includes(id)) known.push(id);
  }
}

/** evaluation-copy.C1 */
function isOver({ record }: CopiedRun): boolean {
  return hasEnded(record.status);
}

async function putBundle(mirror: Mirror, file: string, selected: Selected, options: CopyOptions): Promise<void> {
  await using bundle = await openBundle(file, options);
  const runs: CopiedRun[] = [];
  for await (const copy of copies(bundle, await originOf(bundle), options)) if (isOver(copy)) runs.push(copy);
  await mirror.put(runs);
  for (const run of runs) if (run.parent === undefined) selected.add(run);
}

/** In one transaction: each takes a write to the disk. */
async function* families(store: Store, ids: readonly string[], selected: Selected): AsyncGenerator<CopiedRun> {
  const seen = new Set<string>();
  for (const id of ids)
    for (const copy of await familyOf(store, id, false, seen)) {
      if (!isOver(copy)) continue;
      if (ids.includes(copy.id)) selected.add(copy);
      yield copy;
    }
}

/** The ids by the store they are in; undefined: those that the filters select. */
async function byStore(
  targets: readonly string[],
  filters: readonly RunFilter[],
  options: CopyOptions,
): Promise<ReadonlyMap<string, readonly string[] | undefined>> {
  const stores = new Map<string, string[] | undefined>();
  if (targets.length === 0 && filters.length > 0) stores.set(options.store, undefined);
  for (const target of targets.filter((one) => !isBundleFile(one))) {
    const mirror = target.endsWith("/") ? target.slice(0, -1) : undefined;
    if (mirror !== undefined && hasMirror(options, mirror)) {
      stores.set(mirrorUrl(options, mirror), undefined);
      continue;
    }
    const { url = options.store, id = target } = (await findInMirrors(options, target)) ?? {};
    await withStoreToRead(url, async (store) => {
      const { status } = await getRun(store, id);
      if (!hasEnded(status))
        throw new RepriseError("BAD_OPTIONS", `eval: run ${id} is ${status}. Only runs that have ended are evaluated.`);
    });
    if (!stores.has(url)) stores.set(url, []);
    stores.get(url)?.push(id);
  }
  return stores;
}

const PAGE = 200;
const LIMIT = 100;

/** Newest first. */
async function selectIds(store: Store, filters: readonly RunFilter[]): Promise<readonly string[]> {
  const ids = new Set<string>();
  for (const { limit = LIMIT, ...given } of filters) {
    const { filter } = checkRunFilter({ status: ["completed", "failed"], ...given }, store.now());
    let count = 0;
    for (let before: number | undefined; count < limit;) {
      const page = await store.listRuns({ ...filter, ...(before !== undefined && { before }), limit: PAGE });
      for (const { id, tags } of page) {
        if (count >= limit || tags.some((tag) => tag.startsWith(EVALUATION_TAG))) continue;
        count += 1;
        ids.add(id);
      }
      if (page.length < PAGE) break;
      before = page.at(-1)?.run;
    }
  }
  return [...ids];
}
