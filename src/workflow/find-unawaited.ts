// Find unawaited: the commands that the code of a run requested and never awaited.
//
// A promise does not say whether code waits for it, so the journal is replayed again with promises that do: `await`, `then`,
// `Promise.all` and `Promise.race` call the `then` of a promise that is not a plain one. An async hook would see it too, but it slows
// every promise of the process, and stays enabled when the process stops the replay.

import type { Timers } from "../base/index.ts";
import type { Execution } from "./execution.ts";
import type { RecordedJournal } from "./recorded-journal.ts";
import { driveThrough } from "./replay.ts";
import { findUserLocation } from "./source-location.ts";
import type { Wait } from "./waits.ts";

export interface UnawaitedCommand extends Pick<Wait, "command" | "type" | "name"> {
  /** `src/checkout.ts:12`; undefined when the stack has no user code. */
  readonly place: string | undefined;
}

interface Opened {
  readonly place: string | undefined;
  isAwaited: boolean;
}

class ObservedPromise extends Promise<unknown> {
  opened: Opened | undefined;

  /** What follows from it is not observed. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  // oxlint-disable-next-line unicorn/no-thenable
  override then<A = unknown, B = never>(
    fulfilled?: ((value: unknown) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    if (this.opened !== undefined) this.opened.isAwaited = true;
    return super.then(fulfilled, rejected);
  }
}

function observe(promise: Promise<unknown>, opened: Opened): Promise<unknown> {
  const observed = new ObservedPromise((resolve, reject) => void promise.then(resolve, reject));
  // A rejection that the code does not await must not end the process.
  observed.catch(() => {});
  observed.opened = opened;
  return observed;
}

/** The commands that are open when the code has ended, and that it has not awaited. Undefined: the replay did not reach the end. */
export async function findUnawaited(
  execution: Execution,
  recorded: RecordedJournal,
  timers: Timers,
): Promise<readonly UnawaitedCommand[] | undefined> {
  const byCommand = new Map<string, Opened>();
  const open = execution.open.bind(execution);
  execution.open = function openObserved(...args: Parameters<typeof open>): Promise<unknown> {
    const [, command] = args;
    const opened: Opened = { place: findUserLocation(openObserved), isAwaited: false };
    byCommand.set(command, opened);
    return observe(open(...args), opened);
  };
  await driveThrough(execution, recorded, timers);
  if (execution.stop !== undefined || execution.outcome === undefined) return undefined;
  return execution.waits.all().flatMap(({ command, type, name }) => {
    const opened = byCommand.get(command);
    return opened === undefined || opened.isAwaited ? [] : [{ command, type, name, place: opened.place }];
  });
}
