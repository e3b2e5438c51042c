// Tool arguments: the text that a model wrote as the input of a tool, as data.

/** The text itself, if it is not JSON. */
export function parsedArguments(text: string | undefined): unknown {
  if (text === undefined || text === "") return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

export function argumentsText(input: unknown): string {
  return typeof input === "string" ? input : JSON.stringify(input);
}
