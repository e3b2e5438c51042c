// Evals model: what the pages of evaluations say about a report. Pure.

import type { EvaluatedRunBody, EvaluationSummary } from "../../../../src/contract/evaluation.ts";

export type ShownRuns = "changed" | "all";

/** The runs that the page lists: those that differ come first to mind. */
export function shownRuns(runs: readonly EvaluatedRunBody[], shown: ShownRuns): readonly EvaluatedRunBody[] {
  return shown === "all" ? runs : runs.filter(({ same }) => !same);
}

/** Never rounded up: 0.999 is not 1. */
export function scoreText(value: number): string {
  return (Math.floor(value * 1000) / 1000).toFixed(3).replace(/0$/, "");
}

export function costText(cost: EvaluationSummary["cost"]): string {
  const { usd, tokens, calls } = cost ?? {};
  return [
    ...(usd === undefined ? [] : [`$${usd.toFixed(usd < 1 ? 4 : 2)}`]),
    ...(tokens === undefined ? [] : [`${tokens.toLocaleString("en-US")} tokens`]),
    ...(calls === undefined ? [] : [`${calls.toLocaleString("en-US")} calls`]),
  ].join(" · ");
}

/** What was changed against the runs. */
export function changeText({ models = {}, at, effects }: EvaluationSummary): string {
  const names = Object.entries(models).map(([name, model]) => `${name} → ${model}`);
  const place = at === undefined ? "" : placeText(at);
  return [...names, ...(place === "" ? [] : [`from ${place}`]), ...(effects === "live" ? ["live effects"] : [])].join(
    " · ",
  );
}

function placeText(at: unknown): string {
  const [what, value] = Object.entries((at ?? {}) as Record<string, unknown>)[0] ?? [];
  if (what === undefined) return "";
  if (what !== "call") return `${what} ${String(value)}`;
  const { name, nth } = value as { readonly name: string; readonly nth?: number };
  return nth === undefined ? `call ${name}` : `call ${name} ${nth}`;
}

/** Why a fork is not the same, in one line. */
export function differenceText({ skipped, firstDifference, is }: EvaluatedRunBody): string {
  if (skipped !== undefined) return skipped.message;
  const parts = [firstDifference, is?.error?.code ?? is?.error?.message];
  return parts.filter((part) => part !== undefined).join(": ");
}
