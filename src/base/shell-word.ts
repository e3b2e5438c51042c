/** Quotes a word for a shell, if it needs quotes. */
export function shellWord(word: string): string {
  return /^[\w.:@/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
