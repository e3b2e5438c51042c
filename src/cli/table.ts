// Table: aligned columns for terminals. If a line would be too long, columns with a `minWidth` are clipped.

import { paint } from "./output.ts";
import { clip, clipMiddle, plain } from "./text.ts";

export interface Column {
  readonly title: string;
  readonly right?: boolean;
  /** The column can be clipped to this width. */
  readonly minWidth?: number;
  /** Clips the middle instead of the end. */
  readonly clipsMiddle?: boolean;
}

/** The text of a cell, and the function that colors it after padding. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

const GAP = "  ";

/** The first rows set the widths; later rows are clipped or padded to them. */
export class Table {
  readonly #columns: readonly Column[];
  readonly #maxWidth: number;
  #widths: readonly number[] | undefined;

  /** `maxWidth`: maximum length of a line. */
  constructor(columns: readonly Column[], maxWidth: number = terminalWidth()) {
    this.#columns = columns;
    this.#maxWidth = maxWidth;
  }

  /** Renders rows; the first call also renders the titles. */
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
    let excess = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - this.#maxWidth;
    // Shrink the widest column first.
    while (excess > 0) {
      const widest = widths.reduce(
        (best, width, index) =>
          width > (this.#columns[index]?.minWidth ?? width) && (best === -1 || width > widths[best]!) ? index : best,
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
        const text = (column?.clipsMiddle === true ? clipMiddle : clip)(textOf(cell), width);
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

/** Without a terminal nothing is clipped. */
function terminalWidth(): number {
  return process.stdout.isTTY ? Math.max(60, process.stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
}
