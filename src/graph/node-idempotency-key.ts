// Node idempotency key: what `ctx.idempotencyKey` returns for a node whose options have `idempotencyKey` (rules.G9).

import { RepriseError } from "../base/index.ts";
import type { GraphBody, GraphNode } from "./definition.ts";
import type { StepItem } from "./step-item.ts";

/** The limit of services that take such keys: Stripe accepts 255 characters, an HTTP header more. */
const KEY_LENGTH = 255;

/** Computed once per item from its state and input, so every attempt has the same key. Undefined without the option. */
export function nodeIdempotencyKey(
  body: GraphBody,
  node: GraphNode,
  item: StepItem,
  state: unknown,
): (() => string) | undefined {
  const { idempotencyKey } = node;
  if (idempotencyKey === undefined) return undefined;
  let key: string | undefined;
  return () =>
    (key ??= checked(`Graph ${body.name}: idempotencyKey of node ${node.name}`, idempotencyKey, state, item));
}

function checked(
  what: string,
  make: NonNullable<GraphNode["idempotencyKey"]>,
  state: unknown,
  { input }: StepItem,
): string {
  let key: unknown;
  try {
    key = make(state, input);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new RepriseError("BAD_GRAPH", `${what} threw: ${said}`, { cause: error });
  }
  if (typeof key === "string" && key.length > 0 && key.length <= KEY_LENGTH) return key;
  const got = typeof key === "string" ? `${key.length} characters` : typeof key;
  throw new RepriseError("BAD_GRAPH", `${what}: expected a text of 1 to ${KEY_LENGTH} characters, got ${got}.`);
}
