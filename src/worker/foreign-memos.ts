// ForeignMemos: results of pure steps that other sites computed.
//
// foreign-memos.G1. A worker asks for a key that its own store does not know, so that a known result is not computed again; and for a key
//   that it does know, because two sites with different results switch the memo of the key off (memo.M3).
// foreign-memos.G2. A share of the foreign results is computed anyway and compared. Which ones follows from a hash, so a step that is
//   executed again is treated alike.
// foreign-memos.G3. A store with a codec neither asks nor tells: its keys are made under a secret (memo.M5).

import { digestOf } from "../base/index.ts";

/** What the own store knows about a key. */
export interface MemoQuestion {
  readonly memo: string;
  /** The text of the result; absent: the own store has none. */
  readonly own?: { readonly result: string | undefined };
}

/** What other sites say about a key. */
export type ForeignAnswer =
  | {
      readonly status: "known";
      /** The text of the result; undefined: the step returned undefined. */
      readonly result: string | undefined;
      /** The site that computed it. */
      readonly origin: string;
      /** The share that is computed anyway, from 0 to 1. */
      readonly sample: number;
      /** The operator chose this result among different ones: it is used even if the own store has another. */
      readonly isChosen?: true;
    }
  /** Two sites have different results, or another site has another one than this. */
  | { readonly status: "divergent" };

/** A foreign result that was computed here as well. */
export interface SampledMemo {
  readonly memo: string;
  readonly foreign: Extract<ForeignAnswer, { status: "known" }>;
  /** The text of the own result. */
  readonly result: string | undefined;
  /** The run and the process that computed it. */
  readonly run: string;
  readonly runtime: string;
}

/** Where a worker finds results of pure steps that other sites computed: `memos` of a federation. */
export interface ForeignMemos {
  /** In the order of the questions; undefined: no other site knows the key. */
  ask(questions: readonly MemoQuestion[]): Promise<readonly (ForeignAnswer | undefined)[]>;
  /** foreign-memos.G2 */
  compare(sampled: SampledMemo): void;
}

/** foreign-memos.G2. `call`: the idempotency key of the step. */
export function isSampled(memo: string, call: string, share: number): boolean {
  const draw = Number.parseInt(digestOf("reprise/memo-sample/v1", memo, call).slice(0, 12), 16);
  return draw < share * 2 ** 48;
}
