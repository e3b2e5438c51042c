// Tables for terminals: as wide as what stands in them; where that is too much for a line, columns that may are cut.

import { paint } from "./output.ts";
import { clip, clipMiddle, plain } from "./text.ts";

export interface Column {
  readonly title: string;
  readonly right?: boolean;
  /** May be cut down to this many characters. */
  readonly least?: number;
  /** Cut from the middle. */
  readonly keepsEnds?: boolean;
}

/** A cell, and how it is painted once it has its width. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

const GAP = "  ";

/** Widths are those of the first rows; later ones are cut or padded to them. */
export class Table {
  readonly #columns: readonly Column[];
  readonly #room: number;
  #widths: readonly number[] | undefined;

  /** `room`: how long a line may be. */
  constructor(columns: readonly Column[], room: number = terminalWidth()) {
    this.#columns = columns;
    this.#room = room;
  }

  /** The lines of these rows; before the first ones the titles. */
  render(rows: readonly (readonly Cell[])[]): string[] {
    const isFirst = this.#widths === undefined;
    this.#widths ??= this.#fit(rows);
    const body = rows.map((cells) => this.#line(cells));
    return isFirst ? [paint("dim", this.#line(this.#columns.map(({ title }) => title))), ...body] : body;
  }

  #fit(rows: readonly (readonly Cell[])[]): readonly number[] {
    const widths = this.#columns.map(({ title }, index) =>
      Math.max(title.length, ...rows.map((cells) => textOf(cells[index]).length)),
    );
    let excess = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - this.#room;
    // The widest gives first.
    while (excess > 0) {
      const widest = widths.reduce(
        (best, width, index) =>
          width > (this.#columns[index]?.least ?? width) && (best === -1 || width > widths[best]!) ? index : best,
        -1,
      );
      if (widest === -1) break;
      widths[widest]! -= 1;
      excess -= 1;
    }
    return widths;
  }

  #line(cells: readonly Cell[]): string {
    return cells
      .map((cell, index) => {
        const width = this.#widths?.[index] ?? 0;
        const column = this.#columns[index];
        const text = (column?.keepsEnds === true ? clipMiddle : clip)(textOf(cell), width);
        const padded = column?.right === true ? text.padStart(width) : text.padEnd(width);
        return typeof cell === "string" ? padded : cell.paint(padded);
      })
      .join(GAP)
      .trimEnd();
  }
}

function textOf(cell: Cell | undefined): string {
  return plain(typeof cell === "string" ? cell : (cell?.text ?? ""));
}

/** Nothing is cut where nobody watches: what reads it can scroll. */
function terminalWidth(): number {
  return process.stdout.isTTY ? Math.max(60, process.stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
}
