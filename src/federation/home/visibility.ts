// Visibility: whether an artifact counts at a snapshot, and where it is in merge order.

import { stateOfCell } from "../log/cell.ts";
import type { Origin } from "../log/origin.ts";
import { compareMarks, type Mark } from "../log/record-order.ts";
import { foldRecords } from "../log/state-hash.ts";
import { cellBlob, hexOf, keyBlob } from "./blobs.ts";
import { CLAIM_TYPE, LINK_TYPE } from "./facts.ts";
import type { FoundCell } from "./cells.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Bounds } from "./log-table.ts";
import { relationsWith } from "./relations.ts";

export class Visibility {
  readonly #parts: HomeParts;
  readonly #bounds: Bounds | undefined;
  #visible: Bounds | undefined;

  /** Without bounds: as it is now. */
  constructor(parts: HomeParts, bounds: Bounds | undefined) {
    this.#parts = parts;
    this.#bounds = bounds;
  }

  /**
   * The mark of the artifact, if it is visible; with an origin, the mark of its put. A claim needs no record of its own: it is visible
   * with the first statement that names it.
   */
  markOf(key: string, type: string, origin?: Origin): Mark | undefined {
    const cell = type === LINK_TYPE ? this.#slotCell(key) : `a:${key}`;
    const own = cell === undefined ? undefined : this.#markIn(cell, key, origin);
    if (own !== undefined || type !== CLAIM_TYPE) return own;
    const marks = relationsWith(this.#parts.db, key, "to")
      .filter(({ type: relation }) => relation === "claimed")
      .flatMap(({ by }) => this.#markIn(`a:${by}`, by, origin) ?? []);
    return marks.sort(compareMarks)[0];
  }

  #markIn(cell: string, key: string, origin: Origin | undefined): Mark | undefined {
    if (origin === undefined) return this.#winner(cell, key);
    return this.puts(cell, key).find(({ o }) => o === origin);
  }

  /** The cell that the artifact was put into; undefined: no visible record named it. */
  cellOf(key: string, type: string): FoundCell | undefined {
    const cell = type === LINK_TYPE ? this.#slotCell(key) : `a:${key}`;
    return cell === undefined ? undefined : this.#find(cell);
  }

  #find(cell: string): FoundCell | undefined {
    const { cells } = this.#parts;
    return this.#bounds === undefined ? cells.find(cell) : cells.findAt(cell, this.#bounds);
  }

  /** Of a link that is shadowed by a later one in its slot there is no mark. */
  #winner(cell: string, key: string): Mark | undefined {
    const found = this.#find(cell);
    return found?.state === "visible" && found.add?.id === key ? found.add : undefined;
  }

  #slotCell(key: string): string | undefined {
    const row = this.#parts.db.get("select slot from link_slot where link = ?", keyBlob(key));
    return row && `s:${hexOf(row["slot"])}`;
  }

  /** The greatest put of each origin, if the cell is visible. */
  puts(cell: string, key: string): Mark[] {
    const bounds = this.#bounds ?? (this.#visible ??= this.#parts.log.visibleBounds());
    const records = this.#parts.log.ofCell(cellBlob(cell), bounds);
    const joined = foldRecords(records).get(cell);
    if (joined === undefined || stateOfCell(joined) !== "visible" || joined.add?.id !== key) return [];
    const byOrigin = new Map<string, Mark>();
    for (const { op, c, k, o } of records)
      if (op === "put" && k === key && (byOrigin.get(o)?.c ?? 0) < c) byOrigin.set(o, { c, id: key, o });
    return [...byOrigin.values()];
  }
}
