// Reader: looking without changing. One snapshot per round trip; nothing is locked.

import type { Statements } from "../rules/statements.ts";
import type { Seal } from "../seal.ts";
import { tryWith } from "./attempt.ts";
import { opened } from "./border.ts";
import type { Links } from "./links.ts";
import { patiently, type Waiting } from "./patience.ts";
import type { Question } from "./query.ts";
import type { AnyRow, RowOf, TableName } from "./tables.ts";
import { wordsOf } from "./words.ts";
import { WorkingSet } from "./working-set.ts";

export class Reader {
  readonly #links: Links;
  readonly #waiting: Waiting;
  readonly #patienceMs: number;
  readonly #seal: () => Seal | undefined;

  constructor(links: Links, waiting: Waiting, patienceMs: number, seal: () => Seal | undefined) {
    this.#links = links;
    this.#waiting = waiting;
    this.#patienceMs = patienceMs;
    this.#seal = seal;
  }

  /** With the words of the rules; several round trips where one answer leads to the next question. */
  async speak<T>(what: string, body: (sql: Statements) => T): Promise<T> {
    const ws = new WorkingSet();
    for (;;) {
      const tried = tryWith(ws, () => body(wordsOf(ws, "read")));
      if ("result" in tried) return tried.result;
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
        const answers = await this.#links.use("read", ({ link }) => link.read(questions));
        return answers.map((answer, index) => opened(this.#seal(), questions[index]!.table, answer));
      },
      this.#patienceMs,
    );
  }

  async rows<T extends TableName>(what: string, question: Question & { readonly table: T }): Promise<RowOf<T>[]> {
    const [rows = []] = await this.read(what, [question]);
    return rows as unknown as RowOf<T>[];
  }
}
