// Secrets: values that the engine must not record, log or publish, in any message.
//
// They belong to the process, not to one engine, because failures are recorded in many places, and all of them must redact.
// Without secrets the functions here return their argument.

import { needlesOf, redactData, redactText, type Needles } from "../base/index.ts";

export type SecretValues = () => readonly string[];

/** The last values of each source. Every redaction calls the sources again, because secrets are rotated. */
const sources = new Map<SecretValues, Needles>();

/** Registers a source; the returned function removes it. Throws what `values` throws. */
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
      // Keep the last values: a failing source must neither leak a secret nor prevent recording a failure.
    }
  return [...sources.values()].flat();
}

export function withoutSecrets(text: string): string {
  return sources.size === 0 ? text : redactText(text, secretNeedles());
}

/** Redacts an error and everything it refers to; returns the same object if it contains no secret. */
export function dataWithoutSecrets<T>(value: T): T {
  return sources.size === 0 ? value : (redactData(value, { needles: secretNeedles() }) as T);
}
