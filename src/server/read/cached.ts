// Cached: answers about the whole store that many pages ask for at once. Kept for two seconds, per store.

import type { Store } from "../../kernel/index.ts";

const KEPT_MS = 2_000;
const MAX_KEPT = 200;

interface Kept {
  readonly at: number;
  readonly answer: Promise<unknown>;
}

const kept = new WeakMap<Store, Map<string, Kept>>();

/** The answer under this key, read again if it is older than two seconds of the store's time. */
export function cached<T>(store: Store, key: string, read: () => Promise<T>): Promise<T> {
  const answers = kept.get(store) ?? new Map<string, Kept>();
  kept.set(store, answers);
  const now = store.now();
  const known = answers.get(key);
  if (known !== undefined && now - known.at < KEPT_MS) return known.answer as Promise<T>;
  const answer = read();
  answers.delete(key);
  answers.set(key, { at: now, answer });
  answer.catch(() => answers.delete(key));
  for (const oldest of answers.keys()) if (answers.size > MAX_KEPT) answers.delete(oldest);
  return answer;
}
