// Filled: a small file of a log on a carrier that says which older packs have gained lines since they were first written.
//
// filled.F1. A line per tile: its number and how often its pack was written again. A reader that misses contents reads the packs
//   whose counts it has not seen.

export const FILLED_PATH = "filled";

const LINE = /^(\d{1,12}) (\d{1,9})$/;

/** How often the pack of each tile was written again. Lines that are none are ignored: the file is a hint. */
export function parseFilled(bytes: Uint8Array | undefined): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (const line of Buffer.from(bytes ?? [])
    .toString("utf8")
    .split("\n")) {
    const [, tile, count] = LINE.exec(line) ?? [];
    if (tile !== undefined) counts.set(Number(tile), Number(count));
  }
  return counts;
}

/** filled.F1 */
export function filledText(before: ReadonlyMap<number, number>, tiles: readonly number[]): string {
  const counts = new Map(before);
  for (const tile of tiles) counts.set(tile, (counts.get(tile) ?? 0) + 1);
  return [...counts]
    .toSorted(([a], [b]) => a - b)
    .map(([tile, count]) => `${tile} ${count}\n`)
    .join("");
}
