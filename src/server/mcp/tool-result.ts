// Tool result: the answer of a tool as the content of MCP, and how a refusal of it reads.

import { problemOf } from "../problem.ts";
import { fitAnswer } from "./fit-answer.ts";
import { ToolFailure } from "./started-run.ts";

export interface ToolResult {
  readonly content: readonly { readonly type: "text"; readonly text: string }[];
  readonly isError?: true;
}

const REST = "Ask for less.";

/** The value as JSON of bounded size (fit-answer.F1); a text stays text. */
export function toolResult(answer: unknown, rest = REST): ToolResult {
  const value = answer instanceof ToolFailure ? answer.value : answer;
  const text = typeof value === "string" ? value : (JSON.stringify(fitAnswer(value ?? {}, rest)) ?? "");
  return { content: [{ type: "text", text }], ...(answer instanceof ToolFailure && { isError: true as const }) };
}

/** What was refused, and the next step. The text of an error that is no refusal stays in the log (problem.P2). */
export function refusedResult(error: unknown, onError: (error: unknown) => void): ToolResult {
  const problem = problemOf(error);
  if (problem.status === 500) onError(error);
  const { code, detail, hint, issues } = problem;
  return toolResult(
    new ToolFailure({
      error: code,
      message: detail,
      ...(hint !== undefined && { next: hint }),
      ...(issues !== undefined && { issues }),
      page: `reprise://docs/errors/${code}.md`,
    }),
  );
}
