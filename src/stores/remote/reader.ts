// Reader: looking without changing. One snapshot per round trip; nothing is locked.
//
// E1. What is asked at the same time, or while all links are at work, is asked together: a process that looks at hundreds of
//     runs looks at them in a few round trips.
// E2. Questions that fail together are asked again, each by itself: nobody gets an error that is another's.

import type { Write } from "../../kernel/index.ts";
import type { Statements } from "../rules/statements.ts";
import type { Seal } from "../seal.ts";
import { tryWith } from "./attempt.ts";
import { opened } from "./border.ts";
import { LinkError, type Answer } from "./backend.ts";
import type { Links } from "./links.ts";
import { patiently, type Waiting } from "./patience.ts";
import type { Question } from "./query.ts";
import type { AnyRow, RowOf, TableName } from "./tables.ts";
import { wordsOf } from "./words.ts";
import { WorkingSet } from "./working-set.ts";

interface Asked {
  readonly questions: readonly Question[];
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Working sets that are kept, with their words. */
const MAX_SETS = 8;
/** In one round trip. */
const MAX_QUESTIONS = 256;

export class Reader {
  readonly #links: Links;
  readonly #waiting: Waiting;
  readonly #patienceMs: number;
  readonly #seal: () => Seal | undefined;
  readonly #atOnce: number;
  readonly #sets: WorkingSet[] = [];
  #asked: Asked[] = [];
  #running = 0;

  /** `atOnce`: links that read. */
  constructor(links: Links, atOnce: number, waiting: Waiting, patienceMs: number, seal: () => Seal | undefined) {
    this.#links = links;
    this.#atOnce = atOnce;
    this.#waiting = waiting;
    this.#patienceMs = patienceMs;
    this.#seal = seal;
  }

  /** With the words of the rules; several round trips where one answer leads to the next question. */
  async speak<T>(
    what: string,
    body: (sql: Statements, ws: WorkingSet) => T,
    writes: readonly Write[] = [],
  ): Promise<T> {
    const ws = this.#sets.pop() ?? new WorkingSet();
    for (;;) {
      const tried = tryWith(ws, () => body(wordsOf(ws, "read", { writes }), ws));
      if ("result" in tried) {
        ws.clear();
        if (this.#sets.length < MAX_SETS) this.#sets.push(ws);
        return tried.result;
      }
      const answers = await this.read(what, tried.questions);
      for (const [index, question] of tried.questions.entries()) ws.learn(question, answers[index]!);
    }
  }

  /** One snapshot for all of them. */
  read(what: string, questions: readonly Question[]): Promise<readonly (readonly AnyRow[])[]> {
    if (questions.length === 0) return Promise.resolve([]);
    return patiently(
      this.#waiting,
      what,
      async () => {
        const answers = await this.#ask(questions);
        return answers.map((answer, index) => opened(this.#seal(), questions[index]!.table, answer));
      },
      this.#patienceMs,
    );
  }

  /** E1 */
  #ask(questions: readonly Question[]): Promise<readonly Answer[]> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ questions, resolve, reject });
      if (this.#asked.length === 1 && this.#running < this.#atOnce) queueMicrotask(() => this.#pump());
    });
  }

  #pump(): void {
    while (this.#running < this.#atOnce && this.#asked.length > 0) {
      this.#running += 1;
      void this.#answer(this.#next()).finally(() => {
        this.#running -= 1;
        this.#pump();
      });
    }
  }

  #next(): readonly Asked[] {
    let count = 0;
    let upTo = 0;
    for (const { questions } of this.#asked) {
      count += questions.length;
      if (upTo > 0 && count > MAX_QUESTIONS) break;
      upTo += 1;
    }
    return this.#asked.splice(0, upTo);
  }

  async #answer(asked: readonly Asked[]): Promise<void> {
    try {
      const answers = await this.#read(asked.flatMap(({ questions }) => questions));
      let from = 0;
      for (const { questions, resolve } of asked) resolve(answers.slice(from, (from += questions.length)));
    } catch (error) {
      const isTogether = asked.length > 1 && !(error instanceof LinkError && error.reason === "lost");
      for (const { questions, resolve, reject } of asked)
        // E2
        if (isTogether) await this.#read(questions).then(resolve, reject);
        else reject(error);
    }
  }

  #read(questions: readonly Question[]): Promise<readonly Answer[]> {
    return this.#links.use("read", ({ link }) => link.read(questions));
  }

  async rows<T extends TableName>(what: string, question: Question & { readonly table: T }): Promise<RowOf<T>[]> {
    const [rows = []] = await this.read(what, [question]);
    return rows as unknown as RowOf<T>[];
  }
}
