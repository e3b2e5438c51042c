/** What was thrown, or a stand-in for what cannot even be asked what it is: a revoked proxy. */
export function approachable(thrown: unknown): unknown {
  try {
    void (thrown instanceof Error);
    return thrown;
  } catch {
    return new Error("What was thrown cannot be looked at.");
  }
}
