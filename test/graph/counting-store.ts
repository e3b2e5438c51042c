// Counting store: counts the rows and characters that are read of checkpoints and journals.

import type { StoreSource } from "reprise";
import type { AnyStore } from "../engine/world.ts";

interface Row {
  readonly data?: string;
  readonly state?: string | undefined;
}

export interface CountingStore {
  readonly source: StoreSource;
  readonly rows: number;
  readonly characters: number;
  /** The steps whose entries were read by themselves, sorted. */
  readonly steps: readonly number[];
  reset(): void;
}

const COUNTED = new Set(["readJournal", "readSteps", "readCheckpoints", "findCheckpoint", "findLabeledCheckpoint"]);

export function countingStore(source: StoreSource): CountingStore {
  let rows = 0;
  let characters = 0;
  let steps: number[] = [];
  const count = (name: string, read: readonly Row[]): void => {
    rows += read.length;
    for (const { data = "", state = "" } of read) {
      characters += data.length + state.length;
      if (name === "readSteps") steps.push((JSON.parse(data) as { step: number }).step);
    }
  };
  return {
    get rows() {
      return rows;
    },
    get characters() {
      return characters;
    },
    get steps() {
      return steps.toSorted((a, b) => a - b);
    },
    reset() {
      [rows, characters, steps] = [0, 0, []];
    },
    source: {
      async "~open"(options) {
        const store: AnyStore = await source["~open"](options);
        return new Proxy(store, {
          get(target, key) {
            const value: unknown = Reflect.get(target, key);
            if (typeof value !== "function") return value;
            if (typeof key !== "string" || !COUNTED.has(key)) return value.bind(target) as unknown;
            return async (...args: unknown[]) => {
              const read = (await value.apply(target, args)) as Row | readonly Row[] | undefined;
              count(key, read === undefined ? [] : Array.isArray(read) ? read : [read as Row]);
              return read;
            };
          },
        });
      },
    },
  };
}
