// Loading: what one transaction has asked so far, and the order of its locks (L1).
//
// D1. Runs are locked by number, lowest first, whatever they are asked by: ids are first looked up without a lock.
// D2. Who needs a lock that comes before one it has begins anew and takes them all in order. Waiting for it could be waiting
//     for somebody who waits for us; databases would notice, PostgreSQL after a second.

import type { RunNumber } from "../../kernel/index.ts";
import type { Seal } from "../seal.ts";
import type { Answer } from "./backend.ts";
import { opened } from "./border.ts";
import type { WriteLink } from "./links.ts";
import type { Memory } from "./memory.ts";
import { mergeQuestions } from "./merge-questions.ts";
import { isByNumber, rankOf, runsByNumber } from "./questions.ts";
import type { Question } from "./query.ts";
import type { RowOf } from "./tables.ts";
import type { WorkingSet } from "./working-set.ts";

export class Loading {
  readonly #on: WriteLink;
  readonly #ws: WorkingSet;
  readonly #isOrdered: boolean;
  readonly #seal: Seal | undefined;
  readonly #memory: Memory;
  /** Runs to be locked with the first questions. */
  readonly #foreseen: readonly RunNumber[];
  /** The rank of the last lock, and the highest number among runs. */
  #rank = 0;
  #highestRun = 0;
  readonly asked: Question[] = [];
  /** Runs that were found without a lock. */
  readonly found: RunNumber[] = [];

  constructor(
    on: WriteLink,
    ws: WorkingSet,
    isOrdered: boolean,
    seal: Seal | undefined,
    memory: Memory,
    foreseen: readonly RunNumber[],
  ) {
    this.#on = on;
    this.#ws = ws;
    this.#isOrdered = isOrdered;
    this.#seal = seal;
    this.#memory = memory;
    this.#foreseen = foreseen;
  }

  /** False: begin anew (D2). */
  async load(wanted: readonly Question[]): Promise<boolean> {
    const isFirst = this.asked.length === 0;
    this.asked.push(...wanted);
    let questions = mergeQuestions(isFirst ? [...runsByNumber(this.#foreseen), ...wanted] : wanted);
    if (this.#isOrdered) {
      const numbers = await this.#numbersOf(questions, isFirst);
      if (numbers === undefined) return false;
      if (numbers.length > 0) questions = mergeQuestions([...runsByNumber(numbers), ...questions]);
      if (!this.#isInOrder(questions)) return false;
    }
    const answers = await this.#on.link.ask(questions);
    for (const [index, question] of questions.entries()) this.#learn(question, answers[index]!);
    return true;
  }

  #learn(question: Question, answer: Answer): void {
    const rank = rankOf(question);
    if (rank < LOOKS) this.#rank = Math.max(this.#rank, rank);
    if (rank === RUNS) for (const row of answer) this.#highestRun = Math.max(this.#highestRun, row["run"] as RunNumber);
    this.#ws.learn(question, opened(this.#seal, question.table, answer));
  }

  /** D1. Undefined when some of them come before what is locked. */
  async #numbersOf(questions: readonly Question[], isFirst: boolean): Promise<readonly RunNumber[] | undefined> {
    const others = questions.filter((question) => rankOf(question) === RUNS && !isByNumber(question));
    if (others.length === 0) return [];
    // Alone, it is in order by itself.
    const isAlone = isFirst && !questions.some(isByNumber);
    if (isAlone && others.length === 1 && idsOf(others[0]!).length === 1) return [];
    const hints = this.#hinted(others);
    const numbers = hints ?? (await this.#scout(others));
    this.found.push(...numbers);
    const isAfter = this.#rank === RUNS && numbers.every((run) => run >= this.#highestRun);
    return isAfter ? numbers : undefined;
  }

  /** Numbers that these ids had when they were last seen, if all of them are known. */
  #hinted(questions: readonly Question[]): readonly RunNumber[] | undefined {
    const numbers: RunNumber[] = [];
    for (const id of questions.flatMap(idsOf)) {
      const number = id === undefined ? undefined : this.#memory.numberOf(id);
      if (number === undefined) return undefined;
      numbers.push(number);
    }
    return numbers;
  }

  async #scout(questions: readonly Question[]): Promise<readonly RunNumber[]> {
    const answers = await this.#on.link.ask(questions.map((question) => ({ ...question, lock: "none" }) as Question));
    return answers.flatMap((rows) => (rows as unknown as RowOf<"runs">[]).map(({ run }) => run));
  }

  /** D2 */
  #isInOrder(questions: readonly Question[]): boolean {
    return questions.every((question) => {
      const rank = rankOf(question);
      if (rank === LOOKS) return true;
      if (rank < this.#rank) return false;
      return !isByNumber(question) || question.keys.every(([run]) => (run as RunNumber) >= this.#highestRun);
    });
  }
}

const RUNS = 0;
const LOOKS = 3;

/** Undefined for whatever is not asked by id. */
function idsOf(question: Question): readonly (string | undefined)[] {
  if (question.ask === "lookup" && question.columns[0] === "id") return question.keys.map(([id]) => id as string);
  if (question.ask !== "select") return [undefined];
  const id = question.where.find((one) => one.column === "id" && one.is === "=");
  return [id?.is === "=" ? (id.value as string) : undefined];
}
