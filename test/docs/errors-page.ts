// The page docs/reference/errors.md, generated from the catalogue.

import { ERROR_CATALOGUE, type ErrorFamily } from "../../src/base/index.ts";

/** Who must act. */
export const FAMILIES: Readonly<Record<ErrorFamily, string>> = {
  usage: "the caller: change the call",
  determinism: "the author of the definition: change its code, or restore the earlier code",
  store: "the operator of the database",
  outcome: "the author of the run's code, or the operator",
  federation: "the operator of the other site",
  invariant: "the maintainers of Reprise: please report it",
};

export function errorsPage(): string {
  const sections = Object.entries(FAMILIES).flatMap(([family, who]) => {
    const codes = Object.entries(ERROR_CATALOGUE).filter(([, entry]) => entry.family === family);
    if (codes.length === 0) return [];
    const rows = codes.map(
      ([code, { summary, next }]) => `| [\`${code}\`](../errors/${code}.md) | ${cell(summary)} | ${cell(next)} |`,
    );
    return [`## ${family}: ${who}`, "", "| code | what happened | what to do next |", "|---|---|---|", ...rows, ""];
  });
  return [
    "# Errors",
    "",
    "Every error that Reprise throws is a `RepriseError` with a `code` from this page. `family` says who must act. A code is part of the public interface: its meaning never changes, and it is never reused. Messages may change; do not compare them. `reprise explain <code>` prints the page of a code.",
    "",
    ...sections,
    "`UPDATE_DOCS=1 npm test -- test/docs` generates this page from `src/base/error-catalogue.ts`.",
    "",
  ].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
