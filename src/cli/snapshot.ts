// reprise snapshot: what this site knew at a moment.

import type { SnapshotInfo } from "../federation/index.ts";
import { suggest } from "./command-error.ts";
import { EXIT } from "./exit-codes.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withFederation } from "./open-federation.ts";
import { paint, print, printJson, remark } from "./output.ts";
import { Table } from "./table.ts";
import { plain, pluralize } from "./text.ts";

export type SnapshotOptions = GlobalOptions;

const OPTIONAL = { store: "optional" } as const;
const SHOWN_DIGITS = 16;
const LIST = { USAGE: "reprise snapshot list" } as const;

export function createSnapshot(options: SnapshotOptions): Promise<number> {
  return withFederation(options, OPTIONAL, async ({ snapshots }) => show(await snapshots.create(), snapshots, options));
}

export function showSnapshot(id: string, options: SnapshotOptions): Promise<number> {
  return withFederation(options, OPTIONAL, async ({ snapshots }) =>
    show(await suggest(LIST, snapshots.get(id)), snapshots, options),
  );
}

async function show(
  snapshot: SnapshotInfo,
  snapshots: { stateHash(id?: string): Promise<string> },
  { json }: SnapshotOptions,
): Promise<number> {
  const stateHash = await snapshots.stateHash(snapshot.id);
  if (json) {
    await printJson({ ...jsonOf(snapshot), stateHash });
    return EXIT.ok;
  }
  await print(`${paint("dim", "snapshot")}  ${snapshot.id}`);
  await print(`${paint("dim", "state")}     ${stateHash}`);
  if (snapshot.at !== undefined) await print(`${paint("dim", "taken")}     ${snapshot.at.toISOString()}`);
  for (const [origin, [size]] of Object.entries(snapshot.heads))
    await print(`${paint("dim", "head")}      ${plain(origin)}  ${pluralize(size, "record", "records")}`);
  if (!snapshot.isClosed)
    remark(
      "This cut is not closed: a record in it had seen one that is not. `reprise snapshot create` takes a closed one.",
    );
  return EXIT.ok;
}

function jsonOf({ id, heads, at, isClosed }: SnapshotInfo): object {
  return { id, heads, ...(at !== undefined && { at: at.toISOString() }), isClosed };
}

export function listSnapshots(options: SnapshotOptions): Promise<number> {
  return withFederation(options, OPTIONAL, async ({ snapshots }) => {
    const list = await snapshots.list();
    if (options.json) for (const one of list) await printJson(jsonOf(one));
    else if (list.length === 0) await print("No snapshots. `reprise snapshot create` takes one.");
    else {
      const table = new Table([
        { title: "SNAPSHOT" },
        { title: "TAKEN" },
        { title: "LOGS", right: true },
        { title: "RECORDS", right: true },
      ]);
      const rows = list.map(({ id, at, heads }) => [
        id.slice(0, SHOWN_DIGITS),
        at?.toISOString() ?? "",
        String(Object.keys(heads).length),
        String(Object.values(heads).reduce((sum, [size]) => sum + size, 0)),
      ]);
      for (const line of table.render(rows)) await print(line);
    }
    return EXIT.ok;
  });
}

/** `+`: visible now and not before. A cell is shown by its first digits; --json has all of them. */
function changeText(cell: string, was: string | undefined, is: string | undefined): string {
  const [[before, winner], [after, other]] = [stateOf(was), stateOf(is)];
  const sign = after !== "visible" ? paint("red", "-") : before === "visible" ? "~" : paint("green", "+");
  const change = before === after && winner !== other ? `${before}, by another record` : `${before} → ${after}`;
  return `${sign} ${cell.slice(0, "a:".length + SHOWN_DIGITS)}…  ${change}`;
}

/** The word for the state, and the record that decided it. */
function stateOf(state: string | undefined): readonly [state: string, winner: string | undefined] {
  const [word = "absent", winner] = state?.split(" ") ?? [];
  return [word, winner];
}

export function diffSnapshots(before: string, after: string | undefined, options: SnapshotOptions): Promise<number> {
  return withFederation(options, OPTIONAL, async ({ snapshots }) => {
    const changes = await suggest(LIST, snapshots.diff(before, after));
    for (const { cell, before: was, after: is } of changes)
      await (options.json
        ? printJson({ cell, before: was ?? null, after: is ?? null })
        : print(changeText(cell, was, is)));
    if (changes.length === 0 && !options.json) await print("No difference.");
    return changes.length === 0 ? EXIT.ok : EXIT.problem;
  });
}
