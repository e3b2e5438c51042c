// Model request: what the journal keeps of a call of a model. Strict replay compares it.
//
// model-request.R1. It has the model, the prompt, the tools and the settings. It has no headers, which may be secrets, and nothing
//   that differs between two executions.

import type { CallOptions, LanguageModelV4 } from "./sdk-types.ts";
import { plainData } from "./plain-data.ts";

/** The input of the step of a model call. */
export interface ModelRequest {
  readonly model: string;
  readonly provider: string;
  readonly prompt: unknown;
  readonly tools?: unknown;
  /** Everything else that changes the answer, such as `temperature`. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** model-request.R1 */
export function modelRequest({ modelId, provider }: LanguageModelV4, options: CallOptions): ModelRequest {
  const { prompt, tools, headers: _headers, abortSignal: _signal, ...settings } = options;
  return plainData({ model: modelId, provider, prompt, tools, settings }) as ModelRequest;
}
