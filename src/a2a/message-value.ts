// Message value: what a message says as a value: the input of a run, or the answer to a promise.
//
// message-value.V1. A message with one data part is its value. Otherwise the texts of its parts, one after another, are the value. Files and
//   addresses of files are refused: a run keeps what it gets, and a file does not belong into a journal.

import { RequestMalformedError } from "@a2a-js/sdk/errors";
import type { Message, Part } from "@a2a-js/sdk";

/** message-value.V1 */
export function valueOf({ parts }: Message): unknown {
  const kinds = parts.map(({ content }) => content?.$case);
  if (kinds.some((kind) => kind !== "text" && kind !== "data"))
    throw new RequestMalformedError(
      "A message has text parts, or one data part. Files are not taken: send their address as a text.",
    );
  const data = parts.filter(({ content }) => content?.$case === "data");
  if (data.length > 1) throw new RequestMalformedError("A message has at most one data part.");
  if (data.length === 1) return data[0]!.content?.value as unknown;
  if (parts.length === 0) throw new RequestMalformedError("The message has no parts.");
  return textOf(parts);
}

function textOf(parts: readonly Part[]): string {
  return parts.map(({ content }) => (content?.$case === "text" ? content.value : "")).join("\n");
}

/** The value as an answer to a promise: a text is taken as JSON where the port does not want a text. */
export function answerOf(message: Message, schema: unknown): unknown {
  const value = valueOf(message);
  const { type } = (typeof schema === "object" && schema !== null ? schema : {}) as { readonly type?: unknown };
  if (typeof value !== "string" || type === undefined || type === "string") return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    return value;
  }
}

export function textPart(text: string): Part {
  return { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" };
}

export function dataPart(value: unknown): Part {
  return { content: { $case: "data", value }, metadata: undefined, filename: "", mediaType: "application/json" };
}

/** A text stays text. */
export function valuePart(value: unknown): Part {
  return typeof value === "string" ? textPart(value) : dataPart(value);
}

/** An own text of the metadata of a message or its request. */
export function metadataText(
  name: string,
  ...metadata: readonly (Message["metadata"] | undefined)[]
): string | undefined {
  for (const one of metadata) {
    const value: unknown = one !== undefined && Object.hasOwn(one, name) ? one[name] : undefined;
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}
