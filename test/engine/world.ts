// Helpers of the engine tests: gates, recorded events, and stores that fail on demand.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RepriseEvent, StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";

/** A promise that the test settles, and one that resolves when code waits for it. */
export interface Gate<T = void> {
  readonly opened: Promise<T>;
  readonly reached: Promise<void>;
  /** Waits at the gate. */
  wait(): Promise<T>;
  open(value: T): void;
}

export function createGate<T = void>(): Gate<T> {
  const opened = Promise.withResolvers<T>();
  const reached = Promise.withResolvers<void>();
  return {
    opened: opened.promise,
    reached: reached.promise,
    wait() {
      reached.resolve();
      return opened.promise;
    },
    open: (value) => opened.resolve(value),
  };
}

/** Every event the engine publishes until it is disposed. */
export function watchEvents(): { readonly events: RepriseEvent[]; [Symbol.dispose](): void } {
  const events: RepriseEvent[] = [];
  const note = (event: unknown): void => void events.push(event as RepriseEvent);
  subscribe("reprise", note);
  return { events, [Symbol.dispose]: () => void unsubscribe("reprise", note) };
}

export type AnyStore = Awaited<ReturnType<StoreSource["~open"]>>;
export type AnyWrite = Parameters<AnyStore["write"]>[0][number];
type Apply = () => Promise<readonly unknown[]>;

/** The same store; `around` is called for every batch. */
export function aroundWrites(
  source: StoreSource,
  around: (writes: readonly AnyWrite[], apply: Apply) => Promise<readonly unknown[]>,
): StoreSource {
  return {
    async "~open"(options) {
      return new Proxy(await source["~open"](options), {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          if (key !== "write") return value.bind(target) as unknown;
          return (writes: readonly AnyWrite[]) => around(writes, () => target.write(writes));
        },
      });
    },
  };
}

/** An in-memory store; `around` is called for every batch. */
export function storeAround(
  around: (writes: readonly AnyWrite[], apply: Apply) => Promise<readonly unknown[]>,
  path = ":memory:",
): StoreSource & { readonly store: AnyStore } {
  let opened: AnyStore | undefined;
  const inside: StoreSource = { "~open": async (options) => (opened = await sqlite(path)["~open"](options)) };
  return {
    get store() {
      if (opened === undefined) throw new Error("not opened yet");
      return opened;
    },
    ...aroundWrites(inside, around),
  };
}

/** A store on a file that can be frozen, as SIGSTOP freezes a process: no call completes until it is thawed. */
export function createFreezer(path: string): StoreSource & { freeze(): void; thaw(): void } {
  let gate: Gate | undefined;
  return {
    freeze: () => (gate = createGate()),
    thaw() {
      gate?.open();
      gate = undefined;
    },
    async "~open"(options) {
      const store = await sqlite(path)["~open"](options);
      return new Proxy(store, {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          if (key === "now" || key === "takeNotice" || key === "onNotice") return value.bind(target) as unknown;
          if (key === "pollChanges") return () => gate === undefined && target.pollChanges();
          return async (...args: unknown[]) => {
            await gate?.wait();
            return value.apply(target, args) as unknown;
          };
        },
      });
    },
  };
}

/** A folder that is removed after the test. */
export function createFolder(): { readonly path: string; file(name: string): string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "reprise-engine-"));
  return {
    path,
    file: (name) => join(path, name),
    [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }),
  };
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The error a promise rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise;
  } catch (error) {
    return error as Error & { code?: string };
  }
  throw new Error("expected a rejection, got a value");
}

/** One full turn of the event loop. */
export function macrotask(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The value of a promise; rejects if it takes longer. */
export async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`still waiting after ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when the condition is true; it is checked once per turn of the event loop. */
export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await macrotask();
}
