// reprise explain: prints the page of an error code, or lists all codes.

import { existsSync, readFileSync } from "node:fs";
import { ERROR_CATALOGUE, isErrorCode, type ErrorCode } from "../base/index.ts";
import { CommandError } from "./command-error.ts";
import type { GlobalOptions } from "./global-options.ts";
import { EXIT } from "./exit-codes.ts";
import { paint, print, printJson } from "./output.ts";
import { plain } from "./text.ts";

export async function explain(given: string | undefined, options: GlobalOptions): Promise<number> {
  const codes = Object.keys(ERROR_CATALOGUE).filter(isErrorCode);
  if (given === undefined) {
    for (const code of codes) await (options.json ? printJson(entryOf(code)) : print(lineOf(code)));
    return EXIT.ok;
  }
  const code = given.toUpperCase();
  if (!isErrorCode(code))
    throw new CommandError("USAGE", `Unknown error code ${plain(given)}.${suggestion(code, codes)}`, "reprise explain");
  if (options.json) await printJson(entryOf(code));
  else await print(pageOf(code) ?? `${lineOf(code)}\n  ${paint("dim", "next:")} ${ERROR_CATALOGUE[code].next}`);
  return EXIT.ok;
}

function entryOf(code: ErrorCode): object {
  const { family, summary, next } = ERROR_CATALOGUE[code];
  return { code, family, summary, next };
}

function lineOf(code: ErrorCode): string {
  const { family, summary } = ERROR_CATALOGUE[code];
  return `${paint("bold", code.padEnd(26))} ${paint("dim", family.padEnd(11))} ${summary}`;
}

/** The documentation page of the code, which the package contains. */
function pageOf(code: ErrorCode): string | undefined {
  const file = new URL(`../../docs/errors/${code}.md`, import.meta.url);
  return existsSync(file) ? readFileSync(file, "utf8").trimEnd() : undefined;
}

function suggestion(code: string, codes: readonly ErrorCode[]): string {
  const near = codes.filter((one) => one.includes(code) || (code.length > 3 && code.includes(one)));
  return near.length === 0 ? "" : ` Did you mean ${near.slice(0, 3).join(" or ")}?`;
}
