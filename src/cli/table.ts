// Table: aligned columns for terminals. If a line would be too long, columns with a `minWidth` are clipped first, then
// columns with a `dropOrder` are omitted. Other columns, such as ids, are always printed in full.

import { paint } from "./output.ts";
import { clip, clipMiddle, plain } from "./text.ts";

export interface Column {
  readonly title: string;
  readonly right?: boolean;
  /** The column can be clipped to this width. */
  readonly minWidth?: number;
  /** The column can be omitted; the lowest number first. */
  readonly dropOrder?: number;
  /** Clips the middle instead of the end. */
  readonly clipsMiddle?: boolean;
}

/** The text of a cell, and the function that colors it after padding. */
export type Cell = string | { readonly text: string; readonly paint: (text: string) => string };

const GAP = "  ";

/** The first rows set the columns and their widths; later rows are clipped or padded to them. */
export class Table {
  readonly #columns: readonly Column[];
  readonly #maxWidth: number;
  /** Undefined for an omitted column. */
  #widths: readonly (number | undefined)[] | undefined;

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

  #fit(rows: readonly (readonly Cell[])[]): readonly (number | undefined)[] {
    const full = this.#columns.map(({ title }, index) =>
      Math.max(title.length, ...rows.map((cells) => textOf(cells[index]).length)),
    );
    const kept = new Set(this.#columns);
    const droppable = this.#columns
      .filter(({ dropOrder }) => dropOrder !== undefined)
      .toSorted((a, b) => a.dropOrder! - b.dropOrder!);
    for (;;) {
      const widths = full.map((width, index) => (kept.has(this.#columns[index]!) ? width : undefined));
      const fits = this.#shrink(widths);
      const dropped = droppable.shift();
      if (fits || dropped === undefined) return widths;
      kept.delete(dropped);
    }
  }

  /** Shrinks columns, the widest first. Returns whether a line fits. */
  #shrink(widths: (number | undefined)[]): boolean {
    const shown = widths.filter((width) => width !== undefined);
    let excess = shown.reduce((sum, width) => sum + width, GAP.length * (shown.length - 1)) - this.#maxWidth;
    while (excess > 0) {
      const widest = widths.reduce<number>(
        (best, width, index) =>
          width !== undefined &&
          width > (this.#columns[index]?.minWidth ?? width) &&
          (best === -1 || width > widths[best]!)
            ? index
            : best,
        -1,
      );
      if (widest === -1) return false;
      widths[widest]! -= 1;
      excess -= 1;
    }
    return true;
  }

  #line(cells: readonly Cell[]): string {
    return cells
      .flatMap((cell, index) => {
        const width = this.#widths?.[index];
        const column = this.#columns[index];
        if (width === undefined || column === undefined) return [];
        const text = this.#clipped(textOf(cell), width, column);
        const padded = column.right === true ? text.padStart(width) : text.padEnd(width);
        return [typeof cell === "string" ? padded : cell.paint(padded)];
      })
      .join(GAP)
      .trimEnd();
  }

  #clipped(text: string, width: number, { minWidth, clipsMiddle }: Column): string {
    if (minWidth === undefined || this.#maxWidth === Number.POSITIVE_INFINITY) return text;
    return (clipsMiddle === true ? clipMiddle : clip)(text, width);
  }
}

function textOf(cell: Cell | undefined): string {
  return plain(typeof cell === "string" ? cell : (cell?.text ?? ""));
}

/** Without a terminal nothing is clipped. */
function terminalWidth(): number {
  return process.stdout.isTTY ? Math.max(60, process.stdout.columns ?? 80) : Number.POSITIVE_INFINITY;
}
