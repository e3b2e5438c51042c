// reprise pull: copies runs of another store into a mirror. The other store is opened to read, so a replica will do.
//
// pull.P1. A run comes with all its generations and with the runs it was forked from: what a replay reads. `--family` adds its
//   children, their children, and so on.
// pull.P2. Each named run is put in with those runs in one transaction. A pull that ends early leaves whole runs.
// pull.P3. The mirror remembers the URL of the store without its password. REPRISE_STORE_<NAME> has the whole URL.
// pull.P4. A mirror has the runs of one store: a pull from another URL is refused unless the operator says that the store has moved.

import { mkdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { RepriseError, systemClock, systemRandom, systemTimers } from "../base/index.ts";
import { createHomeFolder, readSettings } from "../federation/index.ts";
import { commandForkOriginOf, decodeData, forkOriginOf, type Store } from "../kernel/index.ts";
import { isServer, shownUrl, sqlitePathOf, storeOf } from "../stores/index.ts";
import { copyOf, Mirror, readMirrorInfo, type CopiedRun, type PutOutcome } from "../stores/maintenance/index.ts";
import { CommandError } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import { homeOf } from "./home.ts";
import type { GlobalOptions } from "./global-options.ts";
import { checkMirrorName, mirrorPath } from "./mirrors.ts";
import { shellWord } from "./next-command.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { payloadCodec } from "./payload-module.ts";
import { createProgress, type Progress } from "./progress.ts";
import { onInterrupt } from "./signals.ts";
import { plain, pluralize } from "./text.ts";

export interface PullOptions extends GlobalOptions {
  readonly last?: number;
  readonly definition?: string;
  readonly family?: boolean;
  readonly as?: string;
  /** The store of the mirror is at another address now. */
  readonly moved?: boolean;
  /** Write a bundle per run into this folder, and no mirror. */
  readonly out?: string;
}

const DEFAULT_LAST = 200;
const PAGE = 200;

export async function pull(source: string, ids: readonly string[], options: PullOptions): Promise<number> {
  if (ids.length > 0 && (options.last !== undefined || options.definition !== undefined))
    throw new RepriseError("USAGE", "pull: select runs by id, or with --last and --definition, not both.");
  if (options.out !== undefined && options.as !== undefined)
    throw new RepriseError("USAGE", "pull: --out writes bundles and --as names a mirror. Pass one of them.");
  if (isSite(source, options)) return (await import("./pull-site.ts")).pullSite(source, ids, options);
  const { name, url } = sourceOf(source, options);
  if (options.out !== undefined) return pullBundles(url, ids, options, options.out);
  return withStoreToRead(url, async (store) => {
    const families = await selectFamilies(store, await selectIds(store, ids, options), options);
    if (families.length === 0) {
      if (!options.json) remark("No matching runs.");
      return EXIT.ok;
    }
    const outcomes = await withMirror(name, options, async (mirror) => {
      const { url: before = shownUrl(url) } = mirror.info;
      if (before !== shownUrl(url) && options.moved !== true)
        throw new RepriseError(
          "BAD_OPTIONS",
          `The mirror ${name} has runs of ${before}; this is ${shownUrl(url)}. Pull from another store under another name with --as <name>. If it is the same store at another address, such as a replica, pass --moved.`,
          { details: { mirror: name, expected: before, actual: shownUrl(url) } },
        );
      const put = await putFamilies(mirror, families, store);
      await mirror.describe({ url: shownUrl(url), hasPassword: shownUrl(url) !== url });
      return put;
    });
    return report("pulled", name, outcomes, options);
  });
}

// ── the source ──

/** A peer of this site, or the address of a carrier: it has logs and contents, and no store to open. */
function isSite(source: string, options: PullOptions): boolean {
  if (/^(?:https?|s3|nats|file):\/\//.test(source) || /^\.{0,2}\//.test(source)) return true;
  return !source.includes(":") && Object.hasOwn(readSettings(homeOf(options)).peers ?? {}, source);
}

interface Source {
  readonly name: string;
  readonly url: string;
}

/** A URL, or the name of a mirror whose URL is known (pull.P3). */
function sourceOf(source: string, options: PullOptions): Source {
  if (source.includes(":")) {
    storeOf(source);
    return { name: checkMirrorName(options.as ?? nameOf(source)), url: absolute(source) };
  }
  const name = checkMirrorName(source);
  const variable = variableOf(name);
  const given = process.env[variable];
  const known = readMirrorInfo(mirrorPath(options, name));
  const target = checkMirrorName(options.as ?? name);
  if (given !== undefined && given !== "") {
    storeOf(given);
    return { name: target, url: absolute(given) };
  }
  if (known?.url !== undefined && known.hasPassword !== true) return { name: target, url: known.url };
  const why =
    known?.url === undefined
      ? `No peer of this site and no mirror is called ${name}. Admit a peer: \`reprise peer add ${name} <url> --key <vkey>\`. Name a store once by its URL: \`reprise pull <store URL> --as ${name}\`; or set ${variable} to the URL.`
      : `The mirror ${name} keeps no password. Set ${variable} to the URL of the store with its password: ${known.url}.`;
  throw new CommandError("BAD_STORE_URL", why, `reprise pull <store URL> --as ${name}`);
}

/** REPRISE_STORE_PROD for the mirror prod. */
function variableOf(name: string): string {
  return `REPRISE_STORE_${name.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}

function absolute(url: string): string {
  if (isServer(url)) return url;
  const path = resolve(sqlitePathOf(url));
  return /[?%]/.test(path) ? url : `sqlite:${path}`;
}

/** The name of the database or of the file. */
function nameOf(url: string): string {
  const path = isServer(url) ? (/^[^?]*\/(?<path>[^/?]+)/.exec(url)?.groups?.["path"] ?? "") : sqlitePathOf(url);
  const name = basename(path)
    .replace(/\.(?:db|sqlite3?)$/, "")
    .replaceAll(/[^a-zA-Z0-9._-]/g, "-");
  if (name !== "") return name;
  throw new RepriseError("USAGE", "pull: the URL names no database to call the mirror after. Add --as <name>.");
}

// ── the runs ──

/** Copies that are put in together, in order (pull.P1, pull.P2). */
type Family = readonly CopiedRun[];

/** Before anything is copied: an unknown id is refused. */
async function selectIds(store: Store, ids: readonly string[], options: PullOptions): Promise<readonly string[]> {
  if (ids.length === 0) return newestIds(store, options);
  for (const id of ids) await getRun(store, id);
  return [...new Set(ids)];
}

async function selectFamilies(
  store: Store,
  ids: readonly string[],
  { family }: PullOptions,
): Promise<readonly Family[]> {
  const seen = new Set<string>();
  const families: Family[] = [];
  for (const id of ids) families.push(await familyOf(store, id, family === true, seen));
  return families.filter((one) => one.length > 0);
}

/** A file per run, named after its id. */
async function pullBundles(url: string, ids: readonly string[], options: PullOptions, folder: string): Promise<number> {
  const { bundle } = await import("./bundle.ts");
  const selected = await withStoreToRead(url, (store) => selectIds(store, ids, options));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const id of selected)
    await bundle([id], {
      ...options,
      store: url,
      output: join(folder, `${encodeURIComponent(id)}.jsonl`),
      outputOption: "--out",
    });
  return EXIT.ok;
}

/** Oldest first. */
async function newestIds(store: Store, { last = DEFAULT_LAST, definition }: PullOptions): Promise<readonly string[]> {
  const ids = new Set<string>();
  for (let before: number | undefined; ids.size < last;) {
    const page = await store.listRuns({
      ...(definition !== undefined && { definition }),
      ...(before !== undefined && { before }),
      limit: PAGE,
    });
    for (const { id, status } of page) if (status !== "expected" && ids.size < last) ids.add(id);
    if (page.length < PAGE) break;
    before = page.at(-1)?.run;
  }
  return [...ids].toReversed();
}

export async function familyOf(
  store: Store,
  id: string,
  withChildren: boolean,
  seen: Set<string>,
): Promise<CopiedRun[]> {
  if (seen.has(id)) return [];
  seen.add(id);
  const newest = await store.findRun(id);
  if (newest === undefined) return [];
  const copies: CopiedRun[] = [];
  for (let generation = 0; generation <= newest.generation; generation += 1) {
    const copy = await copyOf(store, { id, generation });
    if (copy !== undefined) copies.push(copy);
  }
  // The first generation names it.
  const origin = await originOf(store, copies[0]?.number ?? newest.run);
  const before = origin === undefined ? [] : await familyOf(store, origin, false, seen);
  const after: CopiedRun[] = [];
  if (withChildren)
    for (const child of await childrenOf(store, id)) after.push(...(await familyOf(store, child, true, seen)));
  return [...before, ...copies, ...after];
}

/** The run that this one was forked from. */
async function originOf(store: Store, run: number): Promise<string | undefined> {
  const [first] = await store.readJournal(run, 0, 1);
  if (first?.type !== "RunStarted" || !first.data.includes('"forked"')) return undefined;
  const started = decodeData("RunStarted", first.data);
  return (forkOriginOf(started) ?? commandForkOriginOf(started))?.run;
}

async function childrenOf(store: Store, parent: string): Promise<readonly string[]> {
  const ids = new Set<string>();
  for (let before: number | undefined; ;) {
    const page = await store.listRuns({ parent, ...(before !== undefined && { before }), limit: PAGE });
    for (const { id } of page) ids.add(id);
    if (page.length < PAGE) return [...ids].toReversed();
    before = page.at(-1)?.run;
  }
}

// ── the mirror ──

/** Opens the mirror, and removes it again if the command ends before anything is in it. */
export async function withMirror<T>(
  name: string,
  options: GlobalOptions,
  work: (mirror: Mirror) => Promise<T>,
): Promise<T> {
  createHomeFolder(homeOf(options));
  const mirror = await Mirror.open({
    path: mirrorPath(options, name),
    name,
    clock: systemClock,
    timers: systemTimers,
    random: systemRandom,
    codec: payloadCodec(),
  });
  onInterrupt({ cleanUp: () => mirror.close(), announce: () => {} });
  try {
    return await work(mirror);
  } finally {
    await mirror.close();
  }
}

async function putFamilies(mirror: Mirror, families: readonly Family[], store: Store): Promise<readonly PutOutcome[]> {
  const total = families.flat().reduce((sum, { record }) => sum + record.head, 0);
  const progress: Progress = createProgress("pulling", "entries", () => store.now());
  const outcomes: PutOutcome[] = [];
  let done = 0;
  try {
    for (const family of families) {
      outcomes.push(...(await mirror.put(family, (entries) => progress.at(done + entries, total))));
      done += family.reduce((sum, { record }) => sum + record.head, 0);
    }
  } finally {
    progress.end();
  }
  return outcomes;
}

/** Prints what was put into the mirror. With --json, one value per generation. */
export async function report(
  verb: string,
  mirror: string,
  outcomes: readonly PutOutcome[],
  { json }: GlobalOptions,
): Promise<number> {
  if (json) {
    for (const { id, generation, status, entries } of outcomes)
      await printJson({ mirror, id, generation, status, entries });
    return EXIT.ok;
  }
  const ids = [...new Set(outcomes.map(({ id }) => id))];
  const entries = outcomes.reduce((sum, one) => sum + one.entries, 0);
  const changed = new Set(outcomes.filter(({ status }) => status !== "unchanged").map(({ id }) => id)).size;
  const added =
    changed === ids.length
      ? ""
      : changed === 0
        ? "; nothing new"
        : `; ${pluralize(changed, "run", "runs")} new or updated`;
  await print(
    `${paint("green", verb)} ${pluralize(ids.length, "run", "runs")} (${pluralize(entries, "entry", "entries")}${added}) into the mirror ${paint("bold", mirror)}`,
  );
  const next = ids.length === 1 ? `reprise show ${shellWord(`${mirror}/${ids[0]!}`)}` : `reprise list ${mirror}/`;
  remark(`  ${paint("dim", "next:")} ${plain(next)}`);
  return EXIT.ok;
}
