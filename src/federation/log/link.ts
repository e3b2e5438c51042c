// Link: a relation between artifacts, runs and origins that no journal tells.
//
// link.K1. {data?, from, to, type, v: 1}. Ends are keys, `run:<id>` or `origin:<origin>`; 0 to 1,024 on each side, in order.
// link.K2. The id of a link is its key. Its slot is the key of {from, to, type}: links that differ only in `data` compete for one slot.
// link.K3. What runs used and generated is derived from their steps. Links are for the rest: supersedes, forked-from, the user's own.

import { artifactKey, canonicalJson, mediaType, RepriseError } from "../../base/index.ts";
import { isOrigin } from "./origin.ts";

export interface Link {
  readonly type: string;
  readonly from: readonly string[];
  readonly to: readonly string[];
  readonly data?: unknown;
  readonly v: 1;
}

/** Where a key stands in a link. */
export type LinkRole = "from" | "to" | "both";

/** link.K1 */
export const MAX_LINK_ENDS = 1_024;
export const MAX_LINK_BYTES = 1024 * 1024;

const LINK = mediaType("link");
const SLOT = mediaType("slot");
const KEY = /^[0-9a-f]{64}$/;
/** As the ids of runs and names of definitions: no control characters, and none that a store cannot keep. */
const RUN = /^run:[^\p{Cc}\p{Cs}]{1,255}$/u;
const TYPE = /^[^\p{Cc}\p{Cs}]{1,200}$/u;

/** link.K1. The canonical text of a link. */
export function linkText(link: Link): string {
  const { type, from, to, data, v } = link;
  const problem = problemOf(link as unknown as Readonly<Record<string, unknown>>);
  if (problem !== undefined) throw invalid(problem);
  let text: string;
  try {
    text = canonicalJson({ ...(data !== undefined && { data }), from, to, type, v });
  } catch (cause) {
    throw invalid(`has data that is not plain JSON: ${(cause as Error).message}`, cause);
  }
  const size = Buffer.byteLength(text);
  if (size > MAX_LINK_BYTES) throw invalid(`has ${size} bytes; at most ${MAX_LINK_BYTES}`);
  return text;
}

/** The link of a text that another site sent. */
export function parseLink(text: string): Link {
  if (text.length > MAX_LINK_BYTES) throw invalid(`has ${text.length} characters; at most ${MAX_LINK_BYTES} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalid("is not JSON", cause);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw invalid("is not an object");
  if (linkText(value as Link) !== text) throw invalid("is not canonical text");
  return value as Link;
}

/** link.K2 */
export function linkId(text: string): string {
  return artifactKey(LINK, text);
}

/** link.K2 */
export function slotOf({ from, to, type }: Pick<Link, "from" | "to" | "type">): string {
  return artifactKey(SLOT, canonicalJson({ from, to, type }));
}

/** Every end with its role, in the order of the link; an end that occurs twice is named once. */
export function linkEnds({ from, to }: Pick<Link, "from" | "to">): Map<string, LinkRole> {
  const roles = new Map<string, LinkRole>(from.map((end) => [end, "from"]));
  for (const end of to) roles.set(end, roles.has(end) && roles.get(end) !== "to" ? "both" : "to");
  return roles;
}

function problemOf(fields: Readonly<Record<string, unknown>>): string | undefined {
  const { type, from, to, v } = fields;
  const unknown = Object.keys(fields).find((name) => !["data", "from", "to", "type", "v"].includes(name));
  if (unknown !== undefined) return `has the unknown member ${JSON.stringify(unknown.slice(0, 40))}`;
  if (v !== 1) return `is of version ${JSON.stringify(v)}; this version of Reprise knows 1`;
  if (typeof type !== "string" || !TYPE.test(type)) return "has a type that is neither a name nor a key";
  for (const [side, ends] of [
    ["from", from],
    ["to", to],
  ] as const) {
    if (!Array.isArray(ends)) return `has no list \`${side}\``;
    if (ends.length > MAX_LINK_ENDS) return `has ${ends.length} ends in \`${side}\`; at most ${MAX_LINK_ENDS}`;
    const bad = ends.findIndex((end) => !isEnd(end));
    if (bad !== -1) return `has an end ${side}[${bad}] that is neither a key, run:<id> nor origin:<origin>`;
  }
  return undefined;
}

function isEnd(end: unknown): boolean {
  if (typeof end !== "string") return false;
  return KEY.test(end) || RUN.test(end) || (end.startsWith("origin:") && isOrigin(end.slice("origin:".length)));
}

function invalid(why: string, cause?: unknown): RepriseError {
  return new RepriseError("LINK_INVALID", `The link ${why}.`, cause === undefined ? undefined : { cause });
}
