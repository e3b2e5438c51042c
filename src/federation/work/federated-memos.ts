// FederatedMemos: what other sites know about pure steps, from the home. A worker asks it for keys (foreign-memos.ts).
//
// federated-memos.D1. Answers count only if their origin is that of a peer with `memo: { trust: true }`. Those of others are never used,
//   not even to switch a memo off.
// federated-memos.D2. Different results under one key are a conflict `divergence` about `memo:<key>`: the answers with their origins,
//   runs and runtimes are its evidence. While it is open, the memo of the key is off here, even if one of the answers goes away.
// federated-memos.D3. A conflict that was resolved as `use <origin>` picks the answer of that origin, here; the own one included.
// federated-memos.D4. Nothing is kept beside the home: everything follows from its contents, its logs and its conflicts.

import { valueKey } from "../../base/index.ts";
import type { ForeignAnswer, ForeignMemos, MemoQuestion, SampledMemo } from "../../worker/index.ts";
import type { Conflict } from "../home/conflicts.ts";
import type { Home } from "../home/home.ts";
import { firstEpoch, type Origin } from "../log/origin.ts";
import { memoEnd, readMemoAnswer } from "./memo-answer.ts";

export interface FederatedMemosOptions {
  readonly home: Home;
  /** The origin of this site. */
  readonly own: Origin;
  /** The peers whose answers are used, with the share of them that is computed anyway. */
  readonly trusted: ReadonlyMap<Origin, { readonly sample: number }>;
  report(message: string, data: Readonly<Record<string, unknown>>): void;
}

/** A result, and who says so. */
interface Said {
  readonly origin: Origin;
  /** The text of the result; undefined: the step returned undefined. */
  readonly result: string | undefined;
  readonly run?: string;
  readonly runtime?: string;
}

/** How often sampled results were the same, and how often not. */
export interface SampleCounts {
  readonly equal: number;
  readonly different: number;
}

export class FederatedMemos implements ForeignMemos {
  readonly #options: FederatedMemosOptions;
  readonly #own: Origin;
  #equal = 0;
  #different = 0;

  constructor(options: FederatedMemosOptions) {
    this.#options = options;
    this.#own = firstEpoch(options.own);
  }

  get samples(): SampleCounts {
    return { equal: this.#equal, different: this.#different };
  }

  async ask(questions: readonly MemoQuestion[]): Promise<readonly (ForeignAnswer | undefined)[]> {
    return this.#options.trusted.size === 0 ? [] : questions.map((question) => this.#answer(question));
  }

  #answer({ memo, own }: MemoQuestion): ForeignAnswer | undefined {
    const said = this.#trustedAnswers(memo);
    const conflicts = this.#options.home.conflictsAbout(memoEnd(memo));
    if (said.length === 0 && conflicts.length === 0) return undefined;
    const all = own === undefined ? said : [...said, { origin: this.#own, ...own }];
    const picked = findPicked(conflicts, all);
    if (picked !== undefined) return { ...this.#known(picked), isChosen: true };
    if (conflicts.some(({ state }) => state === "open")) return { status: "divergent" };
    if (new Set(all.map(({ result }) => keyOf(result))).size > 1) {
      this.#diverged(memo, all);
      return { status: "divergent" };
    }
    const [first] = said;
    return first && this.#known(first);
  }

  #known({ origin, result }: Said): Extract<ForeignAnswer, { status: "known" }> {
    const sample = this.#options.trusted.get(origin)?.sample ?? 0;
    return { status: "known", result, origin, sample };
  }

  /** federated-memos.D1. One per origin and result, in the order of origins. */
  #trustedAnswers(memo: string): readonly Said[] {
    const { home, trusted } = this.#options;
    const said: Said[] = [];
    for (const { key, origins } of home.saying(memoEnd(memo), "answers")) {
      const content = home.content(key);
      const answer = content && readMemoAnswer(content);
      // memo-answer.N3
      if (answer?.memo !== memo || !origins.some((origin) => firstEpoch(origin) === answer.origin)) continue;
      const { origin, value: result, run, runtime } = answer;
      if (trusted.has(origin)) said.push({ origin, result, run, runtime });
    }
    return said.toSorted((a, b) => compare(a.origin, b.origin) || compare(keyOf(a.result), keyOf(b.result)));
  }

  compare({ memo, foreign, result, run, runtime }: SampledMemo): void {
    if (keyOf(foreign.result) === keyOf(result)) {
      this.#equal += 1;
      return;
    }
    this.#different += 1;
    this.#diverged(memo, [...this.#trustedAnswers(memo), { origin: this.#own, result, run, runtime }]);
  }

  /** federated-memos.D2 */
  #diverged(memo: string, said: readonly Said[]): void {
    const { home } = this.#options;
    const known = home.conflictsAbout(memoEnd(memo)).length > 0;
    const evidence = {
      answers: said
        .map(({ origin, result, run, runtime }) => ({
          origin,
          value: keyOf(result),
          ...(run !== undefined && { run }),
          ...(runtime !== undefined && { runtime }),
        }))
        .toSorted((a, b) => compare(a.origin, b.origin) || compare(a.value, b.value)),
    };
    home.addConflict({ kind: "divergence", cell: memoEnd(memo), evidence });
    if (known) return;
    const origins = [...new Set(said.map(({ origin }) => origin))].join(", ");
    this.#options.report(
      `Sites have different results of one pure step (${origins}), so no result of it is reused: the step is not pure, or a site is wrong. \`reprise fed conflicts\` shows them; a changed function needs another version in \`pure\`.`,
      { memo },
    );
  }
}

/** federated-memos.D3 */
function findPicked(conflicts: readonly Conflict[], said: readonly Said[]): Said | undefined {
  for (const { state, resolution } of conflicts) {
    const [, origin] = (state === "resolved" ? /^use (\S+)$/.exec(resolution ?? "") : null) ?? [];
    const found = said.find((one) => one.origin === origin);
    if (found !== undefined) return found;
  }
  return undefined;
}

const UNDEFINED_KEY = "undefined";

function keyOf(result: string | undefined): string {
  return result === undefined ? UNDEFINED_KEY : valueKey(result);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
