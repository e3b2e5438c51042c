// What a ctx call gives when it will not do what it was asked.

export const ignore = (): void => {};
/** Never shared: a caller may hang a property on it. */
export const never = (): Promise<never> => new Promise(ignore);
/** Already rejected; when nobody awaits it, that is the workflow's business and not the process's. */
export function refused(error: Error): Promise<never> {
  const promise = Promise.reject<never>(error);
  promise.catch(ignore);
  return promise;
}
