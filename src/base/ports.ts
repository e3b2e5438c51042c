// Ports: clock, timers and randomness. Code takes them as arguments, so that a test or a simulation can replace the machine.

/** Milliseconds since 1970, whole. */
export type EpochMs = number;

export interface Clock {
  now(): EpochMs;
  /** Milliseconds since some fixed moment; never goes backwards, even when the wall clock is set. */
  monotonic(): number;
}

export interface TimerOptions {
  /** Whether the timer keeps the process alive; default true. */
  readonly ref?: boolean;
}

export interface Timers {
  /** Calls `fn` once, not before `ms` have passed; the returned function cancels it. Any delay is allowed, also months. */
  set(ms: number, fn: () => void, options?: TimerOptions): () => void;
  /** Calls `fn` in a macrotask: after all callbacks of promises that are already settled. */
  soon(fn: () => void): void;
}

export interface Random {
  bytes(count: number): Uint8Array;
  /** A UUID of version 7: unique, and ascending with time. */
  id(): string;
  /** 128 random bits as 32 hex digits. */
  token(): string;
}
