// Library values: what library code inside `ctx.deterministic` gets from the clock and the random numbers of the machine.
//
// library-values.L1. The time is that of `ctx.now`. Random values are draws of the run, from a path of their own per call of
//   `ctx.deterministic`: concurrent calls do not affect each other, nor the draws of `ctx.random` and `ctx.uuid`.
// library-values.L2. A value fits what the patched function returns, also for a callback.

import { drawBytes, drawUnit, drawUuid, type EpochMs } from "../base/index.ts";

/** The run that a call belongs to. */
export interface LibraryRun {
  readonly startedAt: EpochMs;
  readonly seed: () => bigint;
  readonly now: () => EpochMs;
}

export class LibraryValues {
  readonly #run: LibraryRun;
  readonly #path: string;
  #draws = 0;
  #nested = 0;

  constructor(run: LibraryRun, path: string) {
    this.#run = run;
    this.#path = path;
  }

  /** The path of a call inside this one. */
  nestedPath(): string {
    return `${this.#path}/library(${this.#nested++})`;
  }

  now(): EpochMs {
    return this.#run.now();
  }

  /** Since the run started, in milliseconds. */
  elapsed(): number {
    return Math.max(0, this.#run.now() - this.#run.startedAt);
  }

  unit(): number {
    return drawUnit(this.#run.seed(), this.#path, this.#draws++);
  }

  uuid(): string {
    return drawUuid(this.#run.seed(), this.#path, this.#draws++);
  }

  bytes(count: number): Uint8Array {
    return drawBytes(this.#run.seed(), this.#path, this.#draws++, count);
  }
}

type ValueOf = (values: LibraryValues, args: readonly unknown[], original: () => unknown) => unknown;

/** The values by the name that the guard's messages use. A function without one is refused in library code. */
export const LIBRARY: Readonly<Record<string, ValueOf>> = {
  "Date.now()": (values) => values.now(),
  "performance.now()": (values) => values.elapsed(),
  "process.hrtime.bigint()": (values) => BigInt(values.elapsed()) * 1_000_000n,
  "process.hrtime()": (values, [since]) => hrtimeOf(values.elapsed(), since as [number, number] | undefined),
  "Math.random()": (values) => values.unit(),
  "crypto.randomUUID()": (values) => values.uuid(),
  "randomUUID()": (values) => values.uuid(),
  "crypto.getRandomValues()": (values, _args, original) => fill(values, original() as ArrayBufferView),
  "randomFillSync()": fillPart,
  "randomBytes()": (values, [count, callback], original) => {
    // The original checks the arguments; without the callback it draws, and nothing sees that.
    const made = typeof callback === "function" ? Buffer.alloc(Number(count)) : (original() as Buffer);
    return answer(fill(values, made), callback);
  },
  "randomInt()": (values, args) => {
    const numbers = args.filter((arg): arg is number => typeof arg === "number");
    const [low, high] = numbers.length > 1 ? [numbers[0]!, numbers[1]!] : [0, numbers[0] ?? 0];
    return answer(low + Math.floor(values.unit() * (high - low)), args.at(-1));
  },
};

function hrtimeOf(elapsedMs: number, since: readonly [number, number] | undefined): [number, number] {
  const nanoseconds = elapsedMs * 1e6 - (since === undefined ? 0 : since[0] * 1e9 + since[1]);
  const seconds = Math.floor(nanoseconds / 1e9);
  return [seconds, Math.round(nanoseconds - seconds * 1e9)];
}

function fill<T extends ArrayBufferView>(values: LibraryValues, view: T): T {
  new Uint8Array(view.buffer, view.byteOffset, view.byteLength).set(values.bytes(view.byteLength));
  return view;
}

/** `randomFillSync(buffer, offset, size)`, both in elements. */
function fillPart(
  values: LibraryValues,
  [target, offset = 0, size]: readonly unknown[],
  original: () => unknown,
): unknown {
  original();
  const isView = ArrayBuffer.isView(target);
  const width = isView ? ((target as unknown as { BYTES_PER_ELEMENT?: number }).BYTES_PER_ELEMENT ?? 1) : 1;
  const bytes = isView
    ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength)
    : new Uint8Array(target as ArrayBuffer);
  const start = Number(offset) * width;
  const end = size === undefined ? bytes.length : start + Number(size) * width;
  bytes.set(values.bytes(end - start), start);
  return target;
}

/** library-values.L2 */
function answer(value: unknown, callback: unknown): unknown {
  if (typeof callback !== "function") return value;
  queueMicrotask(() => (callback as (error: null, value: unknown) => void)(null, value));
  return undefined;
}
