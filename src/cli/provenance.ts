// reprise why, uses and export: where a value came from, what followed from it, and the same for other tools.

import { RepriseError, ENGINE_NAME } from "../base/index.ts";
import { decodeData, type RunRecord, type Store } from "../kernel/index.ts";
import {
  blindKey,
  exportOpenLineage,
  exportProv,
  exportSlsa,
  Provenance,
  readExported,
  readProvenance,
  type ExportContext,
  type ExportedRun,
  type Hop,
} from "../receipts/index.ts";
import type { HomeOptions } from "./home.ts";
import { findKey } from "./keys.ts";
import { CommandError } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { shellWord } from "./next-command.ts";
import { getRun, withStoreToRead } from "./open-store.ts";
import { print, printJson, remark } from "./output.ts";
import { Table } from "./table.ts";

export interface ProvenanceOptions extends GlobalOptions {
  /** A run of the family to search. */
  readonly run?: string;
  /** Search the home instead of the store. */
  readonly sites?: boolean;
  readonly snapshot?: string;
  readonly depth?: number;
  readonly limit: number;
}

const RUN = "run:";
const KEY = /^[0-9a-f]{64}$/;
const SHOWN_DIGITS = 12;

export async function trace(what: "why" | "uses", key: string, options: ProvenanceOptions): Promise<number> {
  const { limit, depth } = options;
  if (!key.startsWith(RUN) && !KEY.test(key))
    throw new CommandError(
      "USAGE",
      `Expected the key of a value or a claim (64 hexadecimal digits) or run:<id>, got ${key.slice(0, 80)}. The keys of a run are in the answer for the run itself.`,
      `reprise ${what} ${looksLikeKey(key) ? "run:<id>" : shellWord(`${RUN}${key}`)} --json`,
    );
  if (options.snapshot !== undefined && options.sites !== true)
    throw new RepriseError("USAGE", `${what}: --snapshot is for --sites: a store has no snapshots.`);
  if (options.sites === true) return (await import("./trace-sites.ts")).traceSites(what, key, options);
  const run = options.run ?? (key.startsWith(RUN) ? key.slice(RUN.length) : undefined);
  if (run === undefined)
    throw new CommandError(
      "USAGE",
      `--run <id> is missing: ${what} searches the family of a run, and a key does not say which.`,
      `reprise ${what} ${key} --run <id>`,
    );
  return withStoreToRead(options.store, async (store) => {
    await getRun(store, run);
    const provenance = new Provenance(await readProvenance(store, [run]));
    if (!provenance.has(key)) {
      remark(`No step of the family of run ${run} used or generated ${key}.`);
      return EXIT.problem;
    }
    const { hops, isCut } = provenance[what](key, { limit, depth });
    if (options.json) for (const hop of hops) await printJson(hopJson(hop));
    else if (hops.length > 0) await print(tableOf(hops).join("\n"));
    if (hops.length === 0)
      remark(what === "why" ? "Nothing in the family generated it: it came from outside." : "Nothing used it.");
    if (isCut) remark(`${hops.length} are shown; --limit and --depth show more.`);
    return EXIT.ok;
  });
}

/** A key that was not copied as a whole, rather than the id of a run. */
function looksLikeKey(text: string): boolean {
  return /^[0-9a-f]{32,}$|…/i.test(text);
}

function hopJson({ depth, relation, key, run, generation, part, command, kind, name, used, generated }: Hop): object {
  return {
    depth,
    relation,
    key: key ?? null,
    run,
    generation,
    part,
    command: command ?? null,
    kind: kind ?? null,
    name: name ?? null,
    used,
    generated,
  };
}

function tableOf(hops: readonly Hop[]): readonly string[] {
  const table = new Table([
    { title: "DEPTH", right: true },
    { title: "RUN" },
    { title: "COMMAND" },
    { title: "WHAT", minWidth: 12 },
    { title: "BY", minWidth: SHOWN_DIGITS },
  ]);
  return table.render(
    hops.map(({ depth, run, generation, part, command, kind, name, relation, key }) => [
      String(depth),
      generation === 0 ? run : `${run}#${generation}`,
      command ?? `(${part})`,
      [kind ?? "run", name].filter((text) => text !== undefined).join(" "),
      key === undefined ? relation : `${relation} ${key.startsWith(RUN) ? key : key.slice(0, SHOWN_DIGITS)}`,
    ]),
  );
}

export interface ExportOptions extends GlobalOptions, HomeOptions {
  readonly format: "prov" | "slsa" | "openlineage";
  readonly generation?: number;
  /** Default: that of the signing key, or `local` without one. */
  readonly origin?: string;
}

export async function exportRun(id: string, options: ExportOptions): Promise<number> {
  return withStoreToRead(options.store, async (store) => {
    const record = await getRun(store, id, options.generation);
    if (record.head === 0)
      throw new CommandError(
        "USAGE",
        `Run ${id} has not started, so it has no provenance.`,
        `reprise show ${shellWord(id)}`,
      );
    const exported = await readFor(store, record);
    const origin = options.origin ?? findKey(options)?.key.origin ?? "local";
    for (const document of documentsOf(exported, options.format, { origin, engine: ENGINE_NAME }))
      await print(JSON.stringify(document));
    return EXIT.ok;
  });
}

function documentsOf(exported: ExportedRun, format: ExportOptions["format"], context: ExportContext): Iterable<object> {
  switch (format) {
    case "prov":
      return [exportProv(exported, context)];
    case "slsa":
      return exportSlsa(exported, context);
    case "openlineage":
      return exportOpenLineage(exported, context);
  }
}

/** blind.B1. What leaves a store with a codec tells nothing about its payloads. */
async function readFor(store: Store, record: RunRecord): Promise<ExportedRun> {
  const { codecs } = await store.info();
  if (codecs.length === 0) return readExported(store, record);
  const [first] = await store.readJournal(record.run, 0, 1);
  const salt = first === undefined ? undefined : decodeData("RunStarted", first.data).salt;
  if (salt === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `Run ${record.id} was started before the store had a codec, so it has no salt for blind keys. Write a blind bundle instead: \`reprise bundle ${shellWord(record.id)} --blind\`.`,
    );
  return readExported(store, record, blindKey(Buffer.from(salt, "hex")));
}
