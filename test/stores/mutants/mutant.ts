// Mutant: a store that breaks one guarantee, so that a store case fails.
//
// It wraps a real store and changes its writes or its outcomes.

import type { NewItem, Outcome, RunRecord, Store, TurnWrite, Write } from "../../../src/kernel/index.ts";

export interface Mutant {
  /** How it breaks a guarantee. */
  readonly name: string;
  wrap(store: Store, clock: { now(): number }): Store;
}

export type Changes = { readonly [K in keyof Store]?: unknown };

/** The store with some methods replaced. */
export function changed(store: Store, changes: Changes): Store {
  return new Proxy(store, {
    get(target, key) {
      if (Object.hasOwn(changes, key)) return changes[key as keyof Store];
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

export type Rewrite = (write: Write, store: Store) => Write | Promise<Write>;
export type Answer = (outcome: Outcome, write: Write, store: Store) => Outcome | Promise<Outcome>;

/** The store with every write or every outcome replaced. */
export function writing(store: Store, rewrite: Rewrite, answer: Answer = (outcome) => outcome): Store {
  return changed(store, {
    async write(writes: readonly Write[]) {
      const rewritten = [];
      for (const write of writes) rewritten.push(await rewrite(write, store));
      const outcomes = await store.write(rewritten);
      const answers = [];
      for (const [n, outcome] of outcomes.entries()) answers.push(await answer(outcome, writes[n] as Write, store));
      return answers;
    },
  });
}

export function rewriting(name: string, rewrite: Rewrite, answer?: Answer): Mutant {
  return { name, wrap: (store) => writing(store, rewrite, answer) };
}
export function answering(name: string, answer: Answer): Mutant {
  return rewriting(name, (write) => write, answer);
}
export function turns(
  name: string,
  rewrite: (turn: TurnWrite, store: Store) => TurnWrite | Promise<TurnWrite>,
): Mutant {
  return rewriting(name, (write, store) => (write.write === "turn" ? rewrite(write, store) : write));
}
export function items(name: string, rewrite: (item: NewItem) => NewItem): Mutant {
  return turns(name, (turn) => ({ ...turn, items: turn.items.map(rewrite) }));
}
export function methods(name: string, change: (store: Store, clock: { now(): number }) => Changes): Mutant {
  return { name, wrap: (store, clock) => changed(store, change(store, clock)) };
}
export function records(name: string, change: (record: RunRecord) => RunRecord): Mutant {
  return methods(name, (store) => ({
    findRun: async (id: string) => {
      const record = await store.findRun(id);
      return record && change(record);
    },
    listRuns: async (filter: Parameters<Store["listRuns"]>[0]) => (await store.listRuns(filter)).map(change),
  }));
}

export async function currentToken(store: Store, run: number): Promise<string | undefined> {
  return (await store.readProgress([run]))[0]?.token;
}

export function without<T extends object, K extends keyof T>(record: T, key: K): Omit<T, K> {
  const { [key]: _, ...rest } = record;
  return rest;
}
