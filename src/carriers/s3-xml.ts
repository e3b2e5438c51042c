// S3 XML: the two documents that S3 answers with: a list of keys, and an error. Both are flat, and keys are checked by the caller, so
// a parser for all of XML is not needed.

import type { RepriseError } from "../base/index.ts";
import { refused, type HttpAnswer } from "./http-client.ts";

/** The page of a list: files, and folders with "/" at their end. */
export function listIn(bytes: Uint8Array): { readonly keys: readonly string[]; readonly next: string | undefined } {
  const text = Buffer.from(bytes).toString("utf8");
  const keys = [...text.matchAll(/<Contents>.*?<Key>([^<]*)<\/Key>.*?<\/Contents>/gs)];
  const folders = [...text.matchAll(/<CommonPrefixes>\s*<Prefix>([^<]*)<\/Prefix>\s*<\/CommonPrefixes>/g)];
  const isCut = textOf(text, "IsTruncated") === "true";
  return {
    keys: [...keys, ...folders].map(([, key = ""]) => unescaped(key)),
    next: isCut ? textOf(text, "NextContinuationToken") : undefined,
  };
}

/** The code of an error, such as `NoSuchKey`; undefined if the answer is no document of S3. */
export function s3ErrorCode({ bytes }: HttpAnswer): string | undefined {
  return textOf(Buffer.from(bytes).toString("utf8"), "Code");
}

/** The error that an answer means. */
export function s3Error(url: string, path: string, answer: HttpAnswer): RepriseError {
  const { status, headers, bytes } = answer;
  const code = s3ErrorCode(answer);
  const message = textOf(Buffer.from(bytes).toString("utf8"), "Message") ?? "";
  const region = headers.get("x-amz-bucket-region");
  const isElsewhere = region !== null && (status === 301 || status === 307 || status === 400);
  const hint = isElsewhere
    ? ` The bucket is in another region: add "?region=${region.replace(/[^\w-]/g, "").slice(0, 40)}" to its URL.`
    : status === 401 || status === 403
      ? " Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, the permissions of the key and the clock of this machine."
      : "";
  const text = `${code ?? ""}${message === "" ? "" : `: ${message}`}`.replace(/\p{Cc}/gu, " ").slice(0, 500);
  return refused(url, path, `answered ${status} ${text}.${hint}`.replace(" .", "."), { status, s3: code });
}

function textOf(text: string, name: string): string | undefined {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(text)?.[1];
  return found === undefined ? undefined : unescaped(found);
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

function unescaped(text: string): string {
  return text.replace(
    /&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(\w+));/gi,
    (all, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return ENTITIES[name] ?? all;
      const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
      return code <= 0x10ffff ? String.fromCodePoint(code) : all;
    },
  );
}
