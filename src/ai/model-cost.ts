// Model cost: what a call reserves and what its answer costs.
//
// model-cost.C1. The reservation is an upper bound: a token of the input is at least one byte of the request, and the answer is
//   limited to `maxOutputTokens`.
// model-cost.C2. An answer that does not report its tokens costs what it reserved: its provider may bill it all the same.

import { RepriseError } from "../base/index.ts";
import type { CallCost, Cost } from "../kernel/index.ts";
import { isUnbilled } from "./model-errors.ts";

/** The price of a model in US dollars per million tokens. */
export interface ModelPrice {
  input: number;
  /** Of input tokens that the provider has cached; default: `input`. */
  cachedInput?: number;
  output: number;
}

/** Tokens of one answer. */
export interface TokenCounts {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
  /** model-cost.C2. False: the provider did not say how many, and the counts are 0 where it did not. */
  readonly isReported: boolean;
}

/** The limit of an answer whose request has none, where answers have prices. */
export const DEFAULT_OUTPUT_TOKENS = 4_096;

const MILLION = 1_000_000;

export function checkPrices(prices: Readonly<Record<string, ModelPrice>> | undefined): void {
  for (const [model, price] of Object.entries(prices ?? {}))
    for (const part of ["input", "cachedInput", "output"] as const) {
      const usd: unknown = price[part] ?? (part === "cachedInput" ? 0 : undefined);
      if (typeof usd !== "number" || !(usd >= 0))
        throw new RepriseError(
          "BAD_OPTIONS",
          `durable: prices of ${model}: expected \`${part}\` in US dollars per million tokens, got ${String(usd)}.`,
        );
    }
}

/** What an answer cost. */
export function costOfTokens({ input, cached, output }: TokenCounts, price: ModelPrice | undefined): Cost {
  const cost = { tokens: input + output, calls: 1 };
  if (price === undefined) return cost;
  const { input: perInput, cachedInput = perInput, output: perOutput } = price;
  const known = Math.min(cached, input);
  return { ...cost, usd: ((input - known) * perInput + known * cachedInput + output * perOutput) / MILLION };
}

/** model-cost.C1 */
export function reservation(requestBytes: number, maxOutputTokens: number, price: ModelPrice | undefined): Cost {
  const dearest = price && { ...price, input: Math.max(price.input, price.cachedInput ?? 0) };
  return costOfTokens({ input: requestBytes, cached: 0, output: maxOutputTokens, isReported: true }, dearest);
}

/** model-cost.C2. The worker counts the reservation of an answer whose cost cannot be computed as lost. */
export function billedCost(tokens: TokenCounts, price: ModelPrice | undefined): Cost {
  if (tokens.isReported) return costOfTokens(tokens, price);
  throw new RepriseError(
    "USAGE",
    "The answer does not report how many tokens it took. Let the provider report them, such as with `includeUsage: true` of createOpenAICompatible.",
  );
}

/** Without a price the call is refused where a budget has a cap in dollars. */
export function callCost<T>(
  reserve: () => Cost,
  actual: (answer: T) => Cost,
  price: ModelPrice | undefined,
): CallCost<T> {
  // A function, which the worker calls in runs with a budget: it reads the whole request.
  const lazily = reserve as unknown as Cost;
  return { reserve: lazily, actual, unbilled: isUnbilled, unpriced: price === undefined };
}
