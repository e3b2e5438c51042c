// CLI: every view and action as a command of `reprise`, for "Copy as CLI". The words are those of the command line.

/** A word for a POSIX shell. */
export function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function command(...words: readonly (string | undefined | false)[]): string {
  return ["reprise", ...words.filter((word): word is string => typeof word === "string").map(shellWord)].join(" ");
}
