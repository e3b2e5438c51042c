// Memos: answers pure steps from the store's memo (kernel/memo.ts), with one query for all steps that start together.
//
// memos.A1. A pure step is looked up once per attempt, before its function is called. The entry of an answer says that it was
//   reused, so a replay looks nothing up.
// memos.A2. If the key cannot be made or the memo cannot be read, the function is called and its result is not remembered. No step
//   fails because of the memo.
// memos.A3. Only a key without rows gets one: a key that is off never gets more, however often its step is executed.
// memos.A4. Other sites are asked after the own store, with one call for all steps that start together (foreign-memos.G1).

import { decode, encode, RepriseError } from "../base/index.ts";
import {
  memoKey,
  memoText,
  type ExecutionFacts,
  type MemoAnswer,
  type MemoKeys,
  type NewMemo,
  type PureStep,
} from "../kernel/index.ts";
import type { Attempt } from "./attempt.ts";
import { isSampled, type ForeignAnswer } from "./foreign-memos.ts";
import type { PartsOf } from "./worker-parts.ts";

/** What the call of a pure step returns to its attempt. */
export class PureAnswer {
  /** Set: the result was reused under this key, and `text` is its text. */
  readonly reused: string | undefined;
  readonly text: string | undefined;
  /** What the function returned, if it was called. */
  readonly value: unknown;
  /** The key under which the result is remembered; undefined: not at all. */
  readonly key: string | undefined;

  private constructor(reused: string | undefined, text: string | undefined, value: unknown, key: string | undefined) {
    this.reused = reused;
    this.text = text;
    this.value = value;
    this.key = key;
  }

  static reuse(key: string, text: string | undefined): PureAnswer {
    return new PureAnswer(key, text, text === undefined ? undefined : decode(text), undefined);
  }

  static computed(value: unknown, key: string | undefined): PureAnswer {
    return new PureAnswer(undefined, undefined, value, key);
  }
}

/** What a step returned, whether it is pure or not. */
export function answerOf(value: unknown): Pick<PureAnswer, "reused" | "text" | "value" | "key"> {
  return value instanceof PureAnswer ? value : { reused: undefined, text: undefined, value, key: undefined };
}

/** The facts of an execution, with the row of its result; undefined for a reused result, which nothing was executed for. */
export function factsWithMemo<F extends Partial<ExecutionFacts>>(
  ran: F,
  { reused, key }: Pick<PureAnswer, "reused" | "key">,
  result: string | undefined,
  by: string,
  seq?: number,
): F | undefined {
  if (reused !== undefined) return undefined;
  if (key === undefined) return ran;
  const memo: NewMemo = { memo: key, value: memoText(result), by, ...(seq !== undefined && { seq }) };
  return { ...ran, memo };
}

/** What is known about a key, here and elsewhere. */
interface FoundMemo {
  readonly own: MemoAnswer | undefined;
  readonly foreign?: ForeignAnswer | undefined;
}

interface PendingRead {
  readonly resolve: (found: FoundMemo) => void;
  readonly reject: (error: unknown) => void;
}

/** How many keys one query asks for. */
const MAX_KEYS = 1_000;

type UsedParts = PartsOf<"log" | "options" | "store" | "timers">;

export class Memos {
  readonly #parts: UsedParts;
  #keys: Promise<MemoKeys> | undefined;
  #pending = new Map<string, PendingRead[]>();

  constructor(parts: UsedParts) {
    this.#parts = parts;
  }

  get runtime(): string {
    return this.#parts.options.runtime;
  }

  /**
   * Calls the function, unless its result is known, or its attempt was canceled meanwhile. `stepOf` may throw if the input cannot be
   * encoded.
   */
  async recall(
    stepOf: () => PureStep,
    attempt: Pick<Attempt, "announce" | "isSettled" | "idempotencyKey" | "runId">,
    call: () => unknown,
  ): Promise<PureAnswer | undefined> {
    let key: string | undefined;
    let sampled: Extract<ForeignAnswer, { status: "known" }> | undefined;
    try {
      const step = stepOf();
      const made = await this.#keyOf(step);
      const { own, foreign }: FoundMemo = made === undefined ? { own: undefined } : await this.#read(made);
      const isOff = foreign?.status === "divergent";
      if (made !== undefined && foreign?.status === "known" && foreign.isChosen === true)
        return PureAnswer.reuse(made, foreign.result);
      if (made !== undefined && own?.status === "known" && !isOff) return PureAnswer.reuse(made, own.result);
      if (own === undefined) key = made;
      if (isOff) this.#parts.log.memoOff(step, "divergent");
      else if (own !== undefined && own.status !== "known") this.#parts.log.memoOff(step, own.status);
      else if (made !== undefined && foreign !== undefined) {
        if (!isSampled(made, attempt.idempotencyKey, foreign.sample)) return PureAnswer.reuse(made, foreign.result);
        sampled = foreign;
      }
    } catch (error) {
      // memos.A2
      this.#parts.log.report(error);
    }
    if (attempt.isSettled) return undefined;
    attempt.announce();
    const value = await call();
    if (sampled !== undefined && key !== undefined) this.#compare(key, sampled, attempt.runId, value);
    return PureAnswer.computed(value, key);
  }

  /** foreign-memos.G2 */
  #compare(memo: string, foreign: Extract<ForeignAnswer, { status: "known" }>, run: string, value: unknown): void {
    try {
      const result = value === undefined ? undefined : encode(value);
      this.#parts.options.foreignMemos?.compare({ memo, foreign, result, run, runtime: this.runtime });
    } catch (error) {
      this.#parts.log.report(error);
    }
  }

  async #keyOf(step: PureStep): Promise<string | undefined> {
    const keys = await (this.#keys ??= this.#openKeys());
    return keys.status === "unavailable"
      ? undefined
      : memoKey(step, keys.status === "secret" ? keys.secret : undefined);
  }

  async #openKeys(): Promise<MemoKeys> {
    let keys: MemoKeys;
    try {
      keys = await this.#parts.store.openMemoKeys();
    } catch (error) {
      // The next step tries again.
      this.#keys = undefined;
      throw error;
    }
    if (keys.status === "unavailable")
      this.#parts.log.report(
        new RepriseError(
          "PAYLOAD_UNREADABLE",
          `The secret of the memo cannot be read, so nothing is reused: ${keys.reason}`,
        ),
      );
    return keys;
  }

  #read(key: string): Promise<FoundMemo> {
    return new Promise((resolve, reject) => {
      if (this.#pending.size === 0) this.#parts.timers.soon(() => this.#readAll());
      const waiting = this.#pending.get(key);
      if (waiting === undefined) this.#pending.set(key, [{ resolve, reject }]);
      else waiting.push({ resolve, reject });
    });
  }

  #readAll(): void {
    const asked = [...this.#pending];
    this.#pending = new Map();
    for (let from = 0; from < asked.length; from += MAX_KEYS) this.#readSome(asked.slice(from, from + MAX_KEYS));
  }

  #readSome(asked: readonly (readonly [key: string, waiting: readonly PendingRead[]])[]): void {
    this.#find(asked.map(([key]) => key)).then(
      (found) => {
        for (const [index, [, waiting]] of asked.entries())
          for (const { resolve } of waiting) resolve(found[index] ?? { own: undefined });
      },
      (error: unknown) => {
        for (const [, waiting] of asked) for (const { reject } of waiting) reject(error);
      },
    );
  }

  async #find(keys: readonly string[]): Promise<readonly FoundMemo[]> {
    const known = await this.#parts.store.readMemos(keys);
    const answers = await this.#askOthers(keys, known);
    return keys.map((_, index) => ({ own: known[index], foreign: answers[index] }));
  }

  /** memos.A4 */
  async #askOthers(
    keys: readonly string[],
    known: readonly (MemoAnswer | undefined)[],
  ): Promise<readonly (ForeignAnswer | undefined)[]> {
    const { foreignMemos: foreign } = this.#parts.options;
    // foreign-memos.G3
    if (foreign === undefined || (await this.#keys)?.status !== "plain") return [];
    try {
      return await foreign.ask(
        keys.map((memo, index) => {
          const own = known[index];
          return { memo, ...(own?.status === "known" && { own: { result: own.result } }) };
        }),
      );
    } catch (error) {
      // memos.A2. What the own store knows is used.
      this.#parts.log.report(error);
      return [];
    }
  }
}
