// Secrets: values that must not be recorded, logged or published, whatever message they turn up in.
//
// They belong to the process, not to one engine: a failure is recorded in many places, and none of them may be able to
// forget it. Without secrets nothing is looked at.

import { needlesOf, redactData, redactText, type Needles } from "../base/index.ts";

export type SecretValues = () => readonly string[];

/** What each source said last; asked again every time, because secrets are rotated. */
const sources = new Map<SecretValues, Needles>();

/** From now on; the answer ends it. Throws what `values` throws. */
export function registerSecrets(values: SecretValues): () => void {
  sources.set(values, needlesOf(values()));
  return () => void sources.delete(values);
}

export function secretNeedles(): Needles {
  if (sources.size === 0) return [];
  for (const values of sources.keys())
    try {
      sources.set(values, needlesOf(values()));
    } catch {
      // What it said last still holds: a failing source must neither leak nor keep a failure from being recorded.
    }
  return [...sources.values()].flat();
}

export function withoutSecrets(text: string): string {
  return sources.size === 0 ? text : redactText(text, secretNeedles());
}

/** Errors, and whatever hangs on them; the same object when there is nothing to take out. */
export function dataWithoutSecrets<T>(value: T): T {
  return sources.size === 0 ? value : (redactData(value, { needles: secretNeedles() }) as T);
}
