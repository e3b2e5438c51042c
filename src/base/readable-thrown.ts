import { RepriseError } from "./errors.ts";

/** What was thrown, or a stand-in for a value that throws when its type is tested: a revoked proxy. */
export function readableThrown(thrown: unknown): unknown {
  try {
    void (thrown instanceof RepriseError);
    return thrown;
  } catch {
    return new Error("The thrown value cannot be inspected: it throws when its type is tested.");
  }
}
