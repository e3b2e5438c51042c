// Memo: the results of pure steps, by what they were computed from. A step that is declared pure and known is not executed.
//
// memo.M1. The key is made of what the author says: the name of the step, its input and the version in `pure`. No hash of code: a
//   changed function gets another version.
// memo.M2. A row is written in the transaction that writes the answer of its step. It belongs to the run of the step and is deleted
//   with it, so the value is kept exactly as long as the journal that holds it.
// memo.M3. A key may have several rows: steps that were executed at the same time. Rows with different values are a divergence:
//   the function is not pure. All of them stay, with the runtimes of their processes, and the memo of this key is off.
// memo.M4. A value is stored with its key. A row whose text does not match, or cannot be decoded, switches the memo of its key off.
// memo.M5. In a store with a codec, keys are made under a secret that the codec encrypts: the input cannot be guessed from the key.

import {
  artifactKey,
  encode,
  mediaType,
  RepriseError,
  secretArtifactKey,
  unreadableReason,
  valueKey,
} from "../base/index.ts";
import type { RunNumber } from "./run.ts";

/** What the result of a pure step depends on (memo.M1). */
export interface PureStep {
  readonly kind: "task" | "operation" | "node";
  readonly name: string;
  /** The definition; absent for a task, which any definition may call. */
  readonly of?: string;
  /** The version of its function. */
  readonly pure: string;
  /** The text of its input; undefined: the input is undefined. */
  readonly input: string | undefined;
}

const MEMO = mediaType("memo");
const NOTHING = encode(undefined);

export function memoKey({ kind, name, of, pure, input }: PureStep, secret?: string): string {
  const text = encode({ input: valueKey(input ?? NOTHING), kind, name, ...(of !== undefined && { of }), pure });
  return secret === undefined ? artifactKey(MEMO, text) : secretArtifactKey(secret, MEMO, text);
}

/** How keys of a store are made. `unavailable`: the secret cannot be read, so nothing is reused. */
export type MemoKeys =
  | { readonly status: "plain" }
  | { readonly status: "secret"; readonly secret: string }
  | { readonly status: "unavailable"; readonly reason: string };

/** A row for the commit that writes the answer of its step. */
export interface NewMemo {
  readonly memo: string;
  /** The entry that scheduled a task; absent: the entry that the row is written with. */
  readonly seq?: number;
  /** `memoText` of the result. */
  readonly value: string;
  /** The runtime of the process that executed the step. */
  readonly by: string;
}

/** What the memo says about a key. */
export type MemoAnswer =
  /** `result`: its text; undefined: the step returned undefined. */
  | { readonly status: "known"; readonly result: string | undefined }
  | { readonly status: "divergent" }
  | { readonly status: "damaged" };

/** A row of the memo, for people. */
export interface MemoRecord extends Required<NewMemo> {
  readonly run: RunNumber;
  readonly runId: string;
  readonly definition: string;
  /** The entry that `seq` names. */
  readonly entry: { readonly type: string; readonly command: string; readonly data: string };
}

/** All rows of one key. */
export interface MemoGroup {
  readonly memo: string;
  readonly status: MemoAnswer["status"];
  readonly rows: readonly MemoRecord[];
}

export interface MemoFilter {
  /** Only keys after this one. */
  readonly after?: string;
  /** Only rows of this run. */
  readonly run?: RunNumber;
  /** How many rows are read at most. */
  readonly limit: number;
  /** Only keys that are off: divergent or damaged. */
  readonly off?: boolean;
}

export interface MemoPage {
  readonly groups: readonly MemoGroup[];
  /** The last key that was read; undefined: there are no more. */
  readonly next: string | undefined;
}

// ── stored texts (memo.M4) ──

const HEAD = '{"key":"';
const MIDDLE = '","value":';
const KEY_END = HEAD.length + 64;

export function memoText(result: string | undefined): string {
  const key = valueKey(result ?? NOTHING);
  return result === undefined ? `${HEAD}${key}"}` : `${HEAD}${key}${MIDDLE}${result}}`;
}

/** Undefined: the text is damaged. */
export function readMemoText(text: string): { readonly result: string | undefined } | undefined {
  if (unreadableReason(text) !== undefined) return undefined;
  const result = text.length === KEY_END + 2 ? undefined : text.slice(KEY_END + MIDDLE.length, -1);
  return memoText(result) === text ? { result } : undefined;
}

/** memo.M3, memo.M4. `values`: of all rows of a key. */
export function judgeMemo(values: readonly string[]): MemoAnswer | undefined {
  const [first] = values;
  if (first === undefined) return undefined;
  const read = readMemoText(first);
  if (read === undefined || values.some((value) => value !== first && readMemoText(value) === undefined))
    return { status: "damaged" };
  return values.every((value) => value === first) ? { status: "known", result: read.result } : { status: "divergent" };
}

// ── the option `pure` ──

const MAX_PURE = 200;

/** Refuses anything but a short text. Undefined: the step is not pure. */
export function checkPure(pure: unknown, what: string): string | undefined {
  if (pure === undefined) return undefined;
  if (typeof pure === "string" && pure.length > 0 && pure.length <= MAX_PURE && pure.isWellFormed()) return pure;
  const got = typeof pure === "string" ? `a text of ${pure.length} characters` : typeof pure;
  throw new RepriseError(
    "BAD_OPTIONS",
    `${what}: expected \`pure\` to be the version of the function, a text of 1 to ${MAX_PURE} characters such as "1", got ${got}.`,
  );
}
