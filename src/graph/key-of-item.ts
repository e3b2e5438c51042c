// The key a node hands to the outside, made by the function its options give (G9).

import { RepriseError } from "../base/index.ts";
import type { GraphBody, GraphNode } from "./definition.ts";
import type { Item } from "./item.ts";

/** What services take as a key: Stripe 255 characters, an HTTP header more. */
const KEY_LENGTH = 255;

/** Made once per item, of its state and its input alone: every attempt has the same. Undefined when the node gives no function. */
export function keyOfItem(body: GraphBody, node: GraphNode, item: Item, state: unknown): (() => string) | undefined {
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
  { input }: Item,
): string {
  let key: unknown;
  try {
    key = make(state, input);
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    throw new RepriseError("BAD_GRAPH", `${what} threw instead of giving a key: ${said}`, { cause: error });
  }
  if (typeof key === "string" && key.length > 0 && key.length <= KEY_LENGTH) return key;
  const got = typeof key === "string" ? `${key.length} characters` : typeof key;
  throw new RepriseError("BAD_GRAPH", `${what}: expected a text of 1 to ${KEY_LENGTH} characters, got ${got}.`);
}
