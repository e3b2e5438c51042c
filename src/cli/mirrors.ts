// Mirrors: the files with runs of other stores in the home folder, and how a command line names their runs.
//
// mirrors.N1. `prod/order-7` is the run order-7 of the mirror prod. An id may contain a `/` itself (`nightly/2026-11-18`), so the
//   run of the store with that id comes first.
// mirrors.N2. A bare id that the store lacks is found in a mirror if exactly one has it; the command says which one.
// mirrors.N3. Commands that read work on the file of the mirror as on any store. Commands that write refuse it.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { RepriseError } from "../base/index.ts";
import { shownUrl } from "../stores/index.ts";
import { CommandError } from "./command-error.ts";
import type { GlobalOptions } from "./global-options.ts";
import { homeOf } from "./home.ts";
import { shellWord } from "./next-command.ts";
import { withStoreToRead } from "./open-store.ts";

const FILE = /^(?<name>[a-z0-9][a-z0-9._-]*)\.db$/i;
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i;

export function checkMirrorName(name: string): string {
  if (NAME.test(name)) return name;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${JSON.stringify(name)} is not a name for a mirror. Use at most 64 letters, digits, dots, dashes and underscores, such as --as prod.`,
  );
}

export function mirrorsFolder(options: GlobalOptions): string {
  return join(homeOf(options), "runs");
}

export function mirrorPath(options: GlobalOptions, name: string): string {
  return join(mirrorsFolder(options), `${name}.db`);
}

/** The URL that opens a mirror as a store. */
export function mirrorUrl(options: GlobalOptions, name: string): string {
  const path = mirrorPath(options, name);
  // After `//` a path is percent-encoded; a question mark would start the options of the URL.
  return /[?%]/.test(path) ? `sqlite://${encodeURI(path).replaceAll("?", "%3F")}` : `sqlite:${path}`;
}

export function hasMirror(options: GlobalOptions, name: string): boolean {
  return NAME.test(name) && existsSync(mirrorPath(options, name));
}

/** By name. */
export function mirrorNames(options: GlobalOptions): readonly string[] {
  const folder = mirrorsFolder(options);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .flatMap((file) => FILE.exec(file)?.groups?.["name"] ?? [])
    .sort();
}

/** A run of a mirror. */
export interface MirrorRun {
  readonly mirror: string;
  readonly id: string;
  /** The URL that opens the mirror as a store. */
  readonly url: string;
}

/** `prod/order-7` as mirror and id; undefined: there is no such mirror. */
export function splitName(options: GlobalOptions, name: string): MirrorRun | undefined {
  const end = name.indexOf("/");
  const mirror = name.slice(0, Math.max(0, end));
  if (!hasMirror(options, mirror)) return undefined;
  return { mirror, id: name.slice(end + 1), url: mirrorUrl(options, mirror) };
}

/**
 * Where the run with this name is, if it is in a mirror (mirrors.N1, mirrors.N2). Undefined: it is in the store, or nowhere; the
 * command itself says so.
 */
export async function findInMirrors(options: GlobalOptions, name: string): Promise<MirrorRun | undefined> {
  const names = mirrorNames(options);
  const inStore = names.length === 0 ? "has" : await findIn(options.store, name);
  if (inStore === "has") return undefined;
  const named = splitName(options, name);
  if (named !== undefined) {
    if ((await findIn(named.url, named.id)) === "has") return named;
    throw new CommandError(
      "RUN_NOT_FOUND",
      `The mirror ${named.mirror} has no run ${named.id}. Pull it, or list the runs that it has with \`reprise list ${named.mirror}/\`.`,
      `reprise pull ${named.mirror} ${shellWord(named.id)}`,
    );
  }
  // The command reports why the store cannot be read.
  if (inStore === "unreadable") return undefined;
  const found: MirrorRun[] = [];
  for (const mirror of names) {
    const url = mirrorUrl(options, mirror);
    if ((await findIn(url, name)) === "has") found.push({ mirror, id: name, url });
  }
  if (found.length === 0 && inStore === "missing")
    throw new CommandError(
      "RUN_NOT_FOUND",
      `Run ${name} is in no mirror (${names.join(", ")}), and there is no store at ${shownUrl(options.store)}. Name a run of a mirror as <mirror>/<id>, or the store with --store or REPRISE_STORE.`,
      `reprise list ${names[0]!}/`,
    );
  if (found.length < 2) return found[0];
  throw new RepriseError(
    "USAGE",
    `Run ${name} is in the mirrors ${found.map(({ mirror }) => mirror).join(" and ")}. Name one of them: ${found[0]!.mirror}/${name}.`,
  );
}

/** There is no store at the URL. */
const MISSING: ReadonlySet<string> = new Set(["BAD_STORE_URL", "STORE_FOLDER_MISSING", "STORE_NOT_REPRISE"]);

async function findIn(url: string, id: string): Promise<"has" | "lacks" | "missing" | "unreadable"> {
  try {
    return await withStoreToRead(url, async (store) => ((await store.findRun(id)) === undefined ? "lacks" : "has"));
  } catch (error) {
    if (!(error instanceof RepriseError)) throw error;
    return MISSING.has(error.code) ? "missing" : "unreadable";
  }
}

/** mirrors.N3 */
export function refuseChange({ mirror, id }: MirrorRun, url: string | undefined): CommandError {
  const home = url === undefined ? "<url>" : shellWord(url);
  return new CommandError(
    "STORE_IS_MIRROR",
    `Run ${id} is a copy in the mirror ${mirror}, so it cannot be changed here. Change it in its own store: --store ${home}.`,
    `reprise show ${shellWord(`${mirror}/${id}`)}`,
    { details: { run: id, mirror, ...(url !== undefined && { store: url }) } },
  );
}

/** A bundle carries the signature of its maker: that of a copy would not be the one of the run's home. */
export function refuseBundle({ mirror, id }: MirrorRun, url: string | undefined): CommandError {
  const home = url === undefined ? "<url>" : shellWord(url);
  return new CommandError(
    "STORE_IS_MIRROR",
    `Run ${id} is a copy in the mirror ${mirror}: a bundle of it would carry your signature, not that of its home. Make the bundle from its own store: --store ${home}.`,
    `reprise bundle ${shellWord(id)} -o <file> --store ${home}`,
    { details: { run: id, mirror, ...(url !== undefined && { store: url }) } },
  );
}

/** A fork and its origin are in one store (docs/decisions/0128). */
export function refuseFork({ mirror, id }: MirrorRun, url: string | undefined): CommandError {
  const home = url === undefined ? "<url>" : shellWord(url);
  return new CommandError(
    "STORE_IS_MIRROR",
    `Run ${id} is a copy in the mirror ${mirror}, and a fork is in the store of its origin. Continue the copy in memory with \`reprise debug --live\`, or fork the run in its own store (--store ${home}) and bring the fork here with \`reprise pull\`.`,
    `reprise debug ${shellWord(`${mirror}/${id}`)} <file> --at <command> --live`,
    { details: { run: id, mirror, ...(url !== undefined && { store: url }) } },
  );
}
