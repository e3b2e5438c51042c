// Refusals: what a ctx call returns when it does not do what the code requested.

import type { Definition } from "../kernel/index.ts";

/** `Graph agent`: a definition at the start of a sentence. */
export function describeDefinition({ kind, name }: Pick<Definition, "kind" | "name">): string {
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${name}`;
}

export const ignore = (): void => {};
/** A new promise for each caller, because callers add properties to it. */
export const never = (): Promise<never> => new Promise(ignore);
/** A rejected promise. It causes no unhandled rejection if the workflow does not await it. */
export function rejected(error: Error): Promise<never> {
  const promise = Promise.reject<never>(error);
  promise.catch(ignore);
  return promise;
}
