// Visibility: whether an artifact counts at a snapshot, and where it is in merge order.

import { stateOfCell } from "../log/cell.ts";
import { slotOf } from "../log/link.ts";
import type { Mark } from "../log/record-order.ts";
import { foldRecords } from "../log/state-hash.ts";
import { cellBlob } from "./blobs.ts";
import { CLAIM_TYPE, LINK_TYPE } from "./facts.ts";
import type { HomeParts } from "./home-parts.ts";
import type { Bounds } from "./log-table.ts";
import { relationsWith } from "./relations.ts";

export class Visibility {
  readonly #parts: HomeParts;
  readonly #bounds: Bounds;

  constructor(parts: HomeParts, bounds: Bounds) {
    this.#parts = parts;
    this.#bounds = bounds;
  }

  /** The mark of the artifact, if it is visible. A claim has no record of its own: it is visible with a statement that names it. */
  markOf(key: string, type: string): Mark | undefined {
    if (type === CLAIM_TYPE) {
      const own = this.#winner(`a:${key}`, key);
      if (own !== undefined) return own;
      for (const { by, type: relation } of relationsWith(this.#parts.db, key, "to")) {
        const mark = relation === "claimed" ? this.#winner(`a:${by}`, by) : undefined;
        if (mark !== undefined) return mark;
      }
      return undefined;
    }
    const cell = type === LINK_TYPE ? this.#slotCell(key) : `a:${key}`;
    return cell === undefined ? undefined : this.#winner(cell, key);
  }

  /** Of a link that is shadowed by a later one in its slot there is no mark. */
  #winner(cell: string, key: string): Mark | undefined {
    const found = this.#parts.cells.findAt(cell, this.#bounds);
    return found?.state === "visible" && found.add?.id === key ? found.add : undefined;
  }

  #slotCell(key: string): string | undefined {
    const content = this.#parts.contents.find(key);
    if (content === undefined) return undefined;
    const link = JSON.parse(Buffer.from(content.bytes).toString("utf8")) as Parameters<typeof slotOf>[0];
    return `s:${slotOf(link)}`;
  }

  /** The greatest put of each origin, if the cell is visible. */
  puts(cell: string, key: string): Mark[] {
    const records = this.#parts.log.ofCell(cellBlob(cell), this.#bounds);
    const joined = foldRecords(records).get(cell);
    if (joined === undefined || stateOfCell(joined) !== "visible") return [];
    const byOrigin = new Map<string, Mark>();
    for (const { op, c, k, o } of records)
      if (op === "put" && k === key && (byOrigin.get(o)?.c ?? 0) < c) byOrigin.set(o, { c, id: key, o });
    return [...byOrigin.values()];
  }
}
