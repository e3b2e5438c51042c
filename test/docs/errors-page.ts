// docs/reference/errors.md, made from the catalogue.

import { ERROR_CATALOGUE, type ErrorFamily } from "../../src/base/index.ts";

export const FAMILIES: Readonly<Record<ErrorFamily, string>> = {
  usage: "The caller must change the call",
  determinism: "The code of a definition must change, or go back",
  store: "The operator of the database must act",
  outcome: "How an attempt, a task or a run ended",
  federation: "A peer must act",
  invariant: "We must act: please report it",
};

export function errorsPage(): string {
  const sections = Object.entries(FAMILIES).flatMap(([family, who]) => {
    const codes = Object.entries(ERROR_CATALOGUE).filter(([, entry]) => entry.family === family);
    if (codes.length === 0) return [];
    const rows = codes.map(
      ([code, { summary, next }]) => `| [\`${code}\`](../errors/${code}.md) | ${cell(summary)} | ${cell(next)} |`,
    );
    return [
      `## ${family}: ${who.toLowerCase()}`,
      "",
      "| code | what it means | what to do next |",
      "|---|---|---|",
      ...rows,
      "",
    ];
  });
  return [
    "# Errors",
    "",
    "Every error of Reprise is a `RepriseError` with a `code` from this page. `family` says who must act. A code is part of the public interface: its meaning never changes, and it is never reused. Messages may change; never compare them.",
    "",
    ...sections,
    "This page is made from `src/base/error-catalogue.ts`: `UPDATE_DOCS=1 npm test -- test/docs` writes it.",
    "",
  ].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}
