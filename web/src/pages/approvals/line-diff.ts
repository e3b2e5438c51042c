// Line diff: which lines of an edited text are new and which are gone. Pure; the texts are values that a person edits, so they are short.

export interface EditedLine {
  readonly kind: "same" | "add" | "del";
  readonly text: string;
}

/** Above this many lines only the two texts are compared, line by line. */
const MAX_LINES = 400;

export function diffLines(before: string, after: string): readonly EditedLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  if (a.length > MAX_LINES || b.length > MAX_LINES)
    return b.map((text, index) => ({ kind: a[index] === text ? "same" : "add", text }));
  // Lengths of the longest common subsequences of the rests.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1)
    for (let j = b.length - 1; j >= 0; j -= 1)
      common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
  const lines: EditedLine[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: "same", text: a[i]! });
      i += 1;
      j += 1;
    } else if (i < a.length && (j === b.length || common[i + 1]![j]! >= common[i]![j + 1]!)) {
      lines.push({ kind: "del", text: a[i]! });
      i += 1;
    } else {
      lines.push({ kind: "add", text: b[j]! });
      j += 1;
    }
  }
  return lines;
}

export function countEdits(lines: readonly EditedLine[]): number {
  return Math.max(lines.filter(({ kind }) => kind === "add").length, lines.filter(({ kind }) => kind === "del").length);
}
