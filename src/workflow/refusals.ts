// What a ctx call gives when it will not do what it was asked.

import type { Definition } from "../kernel/index.ts";

/** `Graph agent`: a definition at the beginning of a sentence. */
export function titleOf({ kind, name }: Pick<Definition, "kind" | "name">): string {
  return `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${name}`;
}

export const ignore = (): void => {};
/** Never shared: a caller may hang a property on it. */
export const never = (): Promise<never> => new Promise(ignore);
/** Already rejected; when nobody awaits it, that is the workflow's business and not the process's. */
export function refused(error: Error): Promise<never> {
  const promise = Promise.reject<never>(error);
  promise.catch(ignore);
  return promise;
}
