// Needed contents: what a statement on this thread needs from, or for, a place outside of the file (../contents/outside-contents.ts).
//
// needed-contents.N1. SQLite is read and written without an await. A read that needs a content from outside, and a transaction that
//   refers to one that is not outside yet, throw `OutsideNeeded`. The session fetches or puts everything, and repeats the work.

import { InvariantError } from "../../base/index.ts";
import type { RunNumber } from "../../kernel/index.ts";
import type { NewContent } from "../contents/content-batch.ts";
import type { OutsideContents } from "../contents/outside-contents.ts";
import type { Contents } from "../contents/run-contents.ts";

/** Caught by the session; the work is repeated. */
export class OutsideNeeded extends InvariantError {
  constructor() {
    super("A content outside of the store was needed where it cannot be waited for.");
  }
}

export class NeededContents {
  #wanted = new Map<string, readonly [RunNumber, string]>();
  #new = new Map<string, NewContent>();
  /** Put, or fetched, for work that is being repeated. */
  readonly #put = new Set<string>();
  readonly #found = new Map<string, string>();
  #repeating = 0;

  found(run: RunNumber, content: string): string | undefined {
    return this.#found.size === 0 ? undefined : this.#found.get(`${run}/${content}`);
  }

  add(run: RunNumber, content: string): undefined {
    this.#wanted.set(`${run}/${content}`, [run, content]);
  }

  addNew(added: NewContent): void {
    const name = `${added.run}/${added.content}`;
    if (!this.#put.has(name)) this.#new.set(name, added);
  }

  throwIfAny(): void {
    if (this.#wanted.size > 0) throw new OutsideNeeded();
  }

  throwIfNew(): void {
    if (this.#new.size > 0) throw new OutsideNeeded();
  }

  /** needed-contents.N1. Runs work that may throw `OutsideNeeded`, until it has what it needs. */
  async supply<T>(contents: () => Contents, work: () => Promise<T>): Promise<T> {
    let isRepeating = false;
    try {
      for (;;)
        try {
          return await work();
        } catch (error) {
          if (!(error instanceof OutsideNeeded)) throw error;
          if (!isRepeating) this.#repeating += 1;
          isRepeating = true;
          await this.#get(contents());
        }
    } finally {
      if (isRepeating && --this.#repeating === 0) {
        this.#found.clear();
        this.#put.clear();
      }
    }
  }

  async #get(contents: Contents): Promise<void> {
    const [wanted, added] = [this.#wanted, this.#new];
    this.#wanted = new Map();
    this.#new = new Map();
    const outside = contents.outside;
    if (outside === undefined) throw new InvariantError("A content is outside of a store that has no place outside.");
    await fetchAll(outside, contents, wanted, this.#found);
    await outside.put([...added.values()]);
    for (const name of added.keys()) this.#put.add(name);
  }
}

/** Contents in memory at once while they are fetched. */
const AT_ONCE = 8;

async function fetchAll(
  outside: OutsideContents,
  contents: Contents,
  wanted: ReadonlyMap<string, readonly [RunNumber, string]>,
  found: Map<string, string>,
): Promise<void> {
  const left = wanted.entries();
  await Promise.all(
    Array.from({ length: Math.min(AT_ONCE, wanted.size) }, async () => {
      for (const [name, [run, content]] of left)
        found.set(name, contents.accept(run, content, await outside.get(run, content), outside.name));
    }),
  );
}
