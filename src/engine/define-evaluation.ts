// evaluation(): how a definition is evaluated, for `reprise eval` and for `engine.evaluate`.

import { RepriseError } from "../base/index.ts";
import type { Definition } from "../kernel/index.ts";
import type { EvaluateOptions } from "./evaluation.ts";

/** Options of `evaluation()`: those of `engine.evaluate`, without what differs from call to call. */
export type EvaluationOptions<D> = Omit<EvaluateOptions<D>, "id" | "onProgress" | "runs" | "signal"> &
  Partial<Pick<EvaluateOptions<D>, "runs">>;

/** A definition with the way it is evaluated; from `evaluation()`. */
export interface Evaluation<D extends Definition = Definition> {
  readonly "~kind": "evaluation";
  readonly definition: D;
  readonly options: EvaluationOptions<D>;
}

/**
 * Says how a definition is evaluated. Export it from the file with the definition: `reprise eval` finds it there.
 *
 * @example
 * ```ts
 * import { evaluation, workflow } from "reprise";
 * export const answer = workflow("answer", async (ctx, question: string) => ctx.run("think", { question }, () => `about ${question}`));
 * export const shorter = evaluation(answer, {
 *   score: { shorter: (was, is) => Number((is.output?.length ?? 0) <= (was.output?.length ?? 0)) },
 * });
 * ```
 */
export function evaluation<D extends Definition>(definition: D, options: EvaluationOptions<D> = {}): Evaluation<D> {
  if (typeof definition?.name !== "string")
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      "evaluation: expected a definition made by workflow(), graph() or flow(), got another value.",
    );
  return { "~kind": "evaluation", definition, options };
}

export function isEvaluation(value: unknown): value is Evaluation {
  return typeof value === "object" && value !== null && "~kind" in value && value["~kind"] === "evaluation";
}
