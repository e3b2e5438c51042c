// Payload path: where in a value an encoder or decoder is.

import type { ErrorCode } from "./error-catalogue.ts";
import { RepriseError } from "./errors.ts";

/** The position of a walk through a value: one frame per container, linked upward, so that a path costs nothing until needed. */
export interface Frame {
  readonly container: object;
  readonly up: Frame | undefined;
  readonly depth: number;
  /** The member being visited: a key, an index, or ready-made path text. */
  step: string | number | { readonly text: string };
}

export function frameOf(container: object, up: Frame | undefined): Frame {
  return { container, up, depth: up === undefined ? 1 : up.depth + 1, step: 0 };
}

const IDENTIFIER = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u;

/** `$.items[3].name`; a long path keeps both ends. */
export function pathOf(frame: Frame | undefined): string {
  const steps: string[] = [];
  for (let at = frame; at !== undefined; at = at.up) steps.push(stepText(at.step));
  steps.reverse();
  if (steps.length > 16) steps.splice(8, steps.length - 16, "…");
  return `$${steps.join("")}`;
}

function stepText(step: Frame["step"]): string {
  if (typeof step === "number") return `[${step}]`;
  if (typeof step === "object") return step.text;
  return IDENTIFIER.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`;
}

export function payloadError(
  code: ErrorCode,
  frame: Frame | undefined,
  problem: string,
  cause?: unknown,
): RepriseError {
  const path = pathOf(frame);
  const details = { path };
  return new RepriseError(code, `${path}: ${problem}`, cause === undefined ? { details } : { cause, details });
}
