// Process store: a store as one process uses it: calls take time, fail or never settle, and a witness records what
// was acknowledged.

import { RepriseError } from "../../src/base/index.ts";
import type { Outcome, Store, Write } from "../../src/kernel/index.ts";
import type { ProcessInstance } from "./process.ts";
import type { EventLoop } from "./scheduler.ts";

/** Records the commits that a store acknowledged. */
export interface Witness {
  /** The number of rollbacks of history: a result from before says nothing about the current state. */
  readonly epoch: number;
  wrote(process: string, write: Write, outcome: Outcome): void;
  /** A process has opened its store. */
  began(loop: EventLoop): void;
  /** The store of a process has detected a rollback. */
  noticed(loop: EventLoop): void;
}

/** Called around each store call; may take time, throw, or kill the process. */
export interface Passage {
  /** `isWrite`: the call may change something. */
  before(method: string, isWrite: boolean): Promise<void> | void;
  after(method: string, isWrite: boolean): Promise<void> | void;
  pollChanges(): boolean;
  close(): Promise<void>;
}

const WRITES: ReadonlySet<string> = new Set(["transact", "registerWorker", "renewLease", "releaseWorker", "reap"]);
const POLLS: ReadonlySet<string> = new Set(["claim-turns", "claim-items", "claim-messages", "admit", "fire-due"]);

function isPoll({ write }: Write): boolean {
  return POLLS.has(write);
}

export const NEVER = new Promise<never>(() => {});

type Call = (...args: readonly unknown[]) => Promise<unknown>;

/** A store as one process uses it. */
export function processStore(raw: Store, instance: ProcessInstance, passage: Passage, witness: Witness): Store {
  witness.began(instance.loop);
  const calls = new Map<string, Call>();
  const callOf = (method: string): Call => {
    let call = calls.get(method);
    if (call === undefined) calls.set(method, (call = (...args) => pass(method, args)));
    return call;
  };
  const pass = async (method: string, args: readonly unknown[]): Promise<unknown> => {
    const { loop } = instance;
    if (loop.isDead) return NEVER;
    const isWrite = method === "write" ? !(args[0] as readonly Write[]).every(isPoll) : WRITES.has(method);
    await passage.before(method, isWrite);
    if (loop.isDead) return NEVER;
    const { epoch } = witness;
    const result = await (raw[method as keyof Store] as Call).apply(raw, args as []);
    if (loop.isDead) return NEVER;
    if (method === "write") {
      (args[0] as readonly Write[]).forEach((write, index) => {
        const outcome = (result as readonly Outcome[])[index]!;
        if (witness.epoch === epoch) witness.wrote(instance.name, write, outcome);
        if (!isIdle(write, outcome)) loop.log(lineOf(write, outcome));
      });
    } else if (isWorthTelling(method, result)) loop.log(`${method}: ${JSON.stringify(result)}`);
    await passage.after(method, isWrite);
    return loop.isDead ? NEVER : result;
  };
  return new Proxy(raw, {
    get(_target, key) {
      if (key === "kind") return raw.kind;
      if (key === "now") return () => raw.now();
      // The real disk is outside of the world: it answers when it can (simulate.M2), and not the same each time.
      if (key === "readDiskSpace") return undefined;
      if (key === "pollChanges") return () => passage.pollChanges();
      if (key === "close") return () => passage.close();
      if (key === "takeNotice") return raw.takeNotice && (() => raw.takeNotice!());
      if (key === "onHistoryBreak")
        return (listener: Parameters<NonNullable<Store["onHistoryBreak"]>>[0]) =>
          raw.onHistoryBreak?.((change) => {
            if (instance.loop.isDead) return;
            instance.loop.log(`notices: ${change.kind} ${change.detail}`);
            if (change.kind === "rolled_back") witness.noticed(instance.loop);
            listener(change);
          });
      // The notices of a SQLite file come through the real file system: outside of the world, too.
      if (key === "onNotice" && raw.kind === "sqlite") return undefined;
      if (key === "onNotice")
        return raw.onNotice && ((heard: () => void) => raw.onNotice!(() => instance.loop.isDead || heard()));
      const value: unknown = raw[key as keyof Store];
      return typeof key === "string" && typeof value === "function" ? callOf(key) : value;
    },
  });
}

function isWorthTelling(method: string, result: unknown): boolean {
  if (method === "reap") return (result as { workers: number }).workers > 0;
  if (method === "renewLease") return result !== true;
  return method === "transact" || method === "registerWorker" || method === "releaseWorker";
}

/** A log line for debugging. */
function lineOf(write: Write, outcome: Outcome): string {
  const { run, item, status } = { run: "", item: "", status: undefined, ...write, ...outcome } as Record<
    string,
    unknown
  >;
  const where = typeof run === "number" ? ` ${run} ${String(item)}` : "";
  const what =
    write.write === "turn" ? ` +${write.entries.map(({ type }) => type).join()} ${write.then} ${write.token}` : "";
  return `${write.write}${where}${what}: ${typeof status === "string" ? status : JSON.stringify(outcome).slice(0, 160)}`;
}

/** A poll that found no work: nothing was written. */
export function isIdle(write: Write, outcome: Outcome): boolean {
  const found = outcome as { readonly items?: unknown[]; readonly messages?: unknown[]; readonly runs?: unknown[] };
  switch (write.write) {
    case "claim-turns":
      return (outcome as readonly unknown[]).length === 0;
    case "claim-items":
      return found.items!.length === 0;
    case "claim-messages":
      return found.messages!.length === 0;
    case "admit":
    case "fire-due":
      return found.runs!.length === 0 && ((outcome as { ready?: number }).ready ?? 0) === 0;
    default:
      return false;
  }
}

/** A failure of a disk or a network: the caller cannot know the outcome. */
export function failed({ loop }: ProcessInstance, what: string): RepriseError {
  loop.log(`${what} fails`);
  return new RepriseError("STORE_IO", `${what}: simulated failure.`);
}
