// Promise text: how an open or settled promise reads: a title, why, what is left of `show`, and how it was answered. Pure.

import type { CostBody, OpenPromiseBody, SettledPromiseBody } from "../../../../src/contract/run.ts";
import { shownText } from "../../../../src/contract/shown-text.ts";
import { command } from "../../cli.ts";
import { amount } from "../../format.ts";

const MAX_TITLE = 160;
const MAX_WHY = 400;

export interface PromiseText {
  readonly title: string;
  readonly why: string;
  /** The rest of `show`; undefined: nothing is left. */
  readonly rest: unknown;
}

type Shown = Pick<OpenPromiseBody, "name" | "key" | "show"> & { readonly kind?: string };
type Books = Readonly<Record<"cap" | "reserve" | "spent" | "reserved" | "lost", CostBody>>;

export const DIMENSIONS = ["usd", "tokens", "calls"] as const;

/** What a budget shows to the person who decides. */
export function booksOf(show: unknown): Books {
  const { cap = {}, reserve = {}, spent = {}, reserved = {}, lost = {} } = (show ?? {}) as Partial<Books>;
  return { cap, reserve, spent, reserved, lost };
}

/** What a raise must add so that a call that waits for its budget can begin. */
export function missingCost(show: unknown): CostBody {
  const { cap, reserve, spent, reserved, lost } = booksOf(show);
  const lacking = DIMENSIONS.flatMap((one) => {
    const used = (spent[one] ?? 0) + (reserved[one] ?? 0) + (lost[one] ?? 0) + (reserve[one] ?? 0);
    const more = Math.ceil((used - (cap[one] ?? Number.POSITIVE_INFINITY)) * 1e6 - 0.001) / 1e6;
    return more > 0 && (reserve[one] ?? 0) > 0 ? [[one, more] as const] : [];
  });
  return Object.fromEntries(lacking);
}

export function amountText(cost: CostBody): string {
  return DIMENSIONS.flatMap((one) => (cost[one] === undefined ? [] : [amount(one, cost[one])])).join(", ");
}

/** `Spent $0.31 and lost $0.04 of $2. Operation(1) reserves $5.` */
function budgetText(show: unknown, command: string): string {
  const { cap, reserve, spent, lost } = booksOf(show);
  const capped = DIMENSIONS.filter((one) => cap[one] !== undefined);
  const paid = capped.map((one) => {
    const loss = lost[one] === undefined || lost[one] === 0 ? "" : ` and lost ${amount(one, lost[one])}`;
    return `${amount(one, spent[one] ?? 0)}${loss} of ${amount(one, cap[one]!)}`;
  });
  const more = amountText(Object.fromEntries(capped.map((one) => [one, reserve[one]])));
  return `Spent ${paid.join(", ")}. ${command} reserves ${more}.`;
}

/** The title is a field of `show` that reads like one, else the name of the port. */
export function textOfPromise({ kind, name, key, show }: Shown): PromiseText {
  if (kind === "budget")
    return {
      title: `Raise the budget by ${amountText(missingCost(show))}`,
      why: show === undefined ? "" : budgetText(show, key ?? "The next call"),
      rest: undefined,
    };
  const fallback = key === undefined ? name : `${name} · ${key}`;
  if (typeof show === "string") return { title: line(show, MAX_TITLE) || fallback, why: "", rest: undefined };
  if (typeof show !== "object" || show === null || Array.isArray(show)) return { title: fallback, why: "", rest: show };
  const { title, why, rest } = shownText(show as Readonly<Record<string, unknown>>);
  return {
    title: title === undefined ? fallback : line(title, MAX_TITLE),
    why: why === undefined ? "" : line(why, MAX_WHY),
    rest: rest.length === 0 ? undefined : Object.fromEntries(rest),
  };
}

function line(text: string, limit: number): string {
  const start = text
    .slice(0, limit * 2)
    .replace(/\s+/g, " ")
    .trim();
  return start.length > limit || text.length > limit * 2 ? `${start.slice(0, limit)}…` : start;
}

export const idOf = ({ run, name, key }: Pick<OpenPromiseBody, "run" | "name" | "key">): string =>
  JSON.stringify([run, name, key ?? null]);

/** The address of the operation that settles it. */
export function pathOf({ run, name, key }: Pick<OpenPromiseBody, "run" | "name" | "key">): string {
  const path = `/v1/runs/${encodeURIComponent(run)}/promises/${encodeURIComponent(name)}`;
  return key === undefined ? path : `${path}/${encodeURIComponent(key)}`;
}

export type Answer = { readonly value: unknown } | { readonly reject: string };

/** The command that raises the budget of a run; without an amount, declines to. */
export function budgetCommand(run: string, add: CostBody | undefined, reason: string): string {
  const amounts = Object.entries(add ?? {}).flatMap(([one, more]) => [`--${one}`, String(more)]);
  return command(add ? "raise" : "decline", run, ...amounts, ...(reason === "" ? [] : ["--reason", reason]));
}

/** The same answer as a command. */
export function commandOf(
  promise: Pick<OpenPromiseBody, "run" | "name" | "key"> & { readonly kind?: string },
  answer: Answer,
  reason: string,
): string {
  const { run, name, key } = promise;
  if (promise.kind === "budget")
    return budgetCommand(run, "reject" in answer ? undefined : (answer.value as CostBody), reason);
  const options = [...(key === undefined ? [] : ["--key", key]), ...(reason === "" ? [] : ["--reason", reason])];
  if ("reject" in answer) return command("reject", run, name, answer.reject, ...options);
  return command("resolve", run, name, JSON.stringify(answer.value) ?? "null", ...options);
}

/** How a settled promise is called: what the value says, else what was done. */
export function outcomeOf({ outcome, value }: Pick<SettledPromiseBody, "outcome" | "value">): {
  readonly word: string;
  readonly status: "completed" | "failed" | "cancelled";
} {
  if (outcome === "timed_out") return { word: "Timed out", status: "cancelled" };
  if (outcome === "rejected") return { word: "Rejected", status: "failed" };
  const decision = decisionOf(value);
  if (decision === undefined) return { word: "Answered", status: "completed" };
  return decision ? { word: "Approved", status: "completed" } : { word: "Rejected", status: "failed" };
}

function decisionOf(value: unknown): boolean | undefined {
  if (typeof value === "boolean") return value;
  if (typeof value !== "object" || value === null) return undefined;
  for (const field of ["ok", "approved"]) {
    const one = Object.hasOwn(value, field) ? (value as Record<string, unknown>)[field] : undefined;
    if (typeof one === "boolean") return one;
  }
  return undefined;
}

/** The middle of the waits in ms; undefined without any. */
export function medianWait(items: readonly SettledPromiseBody[]): number | undefined {
  const waits = items
    .filter(({ createdAt }) => createdAt !== undefined)
    .map(({ createdAt, settledAt }) => Date.parse(settledAt) - Date.parse(createdAt!))
    .toSorted((a, b) => a - b);
  return waits[Math.floor(waits.length / 2)];
}
