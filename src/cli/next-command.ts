// Next command: the form of the commands that the output suggests. The user can paste them: words are quoted for a shell,
// and `--store` is added if this command line uses a store other than the default.

import { shellWord as quoteWord } from "../base/index.ts";
import { suggestedStore } from "./global-options.ts";
import { plain } from "./text.ts";

/** A complete command that opens a store. `reprise backup` without its file only names the command. */
const STORE_COMMAND =
  /^reprise (?:(?:doctor|list|migrate|promises|rekey|top)\b|(?:backup|budget|cancel|checkpoints|debug|decline|delete|dev|diff|fork|journal|pause|prune|query|queue|raise|reject|replay|resolve|restore|resume|retry|run|schedule|show|signal|stream|terminate|update|verify|worker) \S)/;

/** Adds `--store` to the commands of a text: those between backticks or, without backticks, the one at the end. */
export function withStoreOption(text: string): string {
  const store = suggestedStore();
  if (store === undefined) return text;
  const complete = (command: string): string =>
    STORE_COMMAND.test(command) && !/ --(?:store|help)\b/.test(command)
      ? `${command} --store ${shellWord(store)}`
      : command;
  if (text.includes("`")) return text.replace(/`(reprise [^`]+)`/g, (_, command: string) => `\`${complete(command)}\``);
  const start = text.startsWith("reprise ") ? 0 : text.indexOf(": reprise ") + 2;
  return start === 1 ? text : `${text.slice(0, start)}${complete(text.slice(start))}`;
}

export function shellWord(word: string): string {
  return quoteWord(plain(word));
}
