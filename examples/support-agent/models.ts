// The models by name. Offline by default; with MODEL_URL, any server that speaks the protocol of chat completions:
//
//   MODEL_URL=http://127.0.0.1:11434/v1 MODEL=qwen3 SECOND_MODEL=llama3.2 node … examples/support-agent/server.ts

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4 } from "@ai-sdk/provider";
import { scriptedModel } from "./scripted-model.ts";

const { MODEL_URL: baseURL, MODEL_KEY: apiKey, MODEL = "fast", SECOND_MODEL = "second" } = process.env;

function createModels(): { fast: LanguageModelV4; second: LanguageModelV4 } {
  if (baseURL === undefined)
    return { fast: scriptedModel(MODEL, "friendly"), second: scriptedModel(SECOND_MODEL, "brief") };
  const provider = createOpenAICompatible({
    name: "models",
    baseURL,
    includeUsage: true,
    ...(apiKey !== undefined && { apiKey }),
  });
  return { fast: provider(MODEL), second: provider(SECOND_MODEL) };
}

export const models = createModels();

/** US dollars per million tokens. */
export const prices = {
  [MODEL]: { input: 0.5, output: 2 },
  [SECOND_MODEL]: { input: 3, output: 12 },
};
