// crashEverywhere: a workflow that crashes at any commit and resumes must return the same output.
//
// crash-everywhere.Y1. Every batch of writes has two crash points: just before it is applied, and just after it was applied but
//   before the caller gets the outcomes.
// crash-everywhere.Y2. A crash takes no virtual time, so that values read from the clock stay the same.
// crash-everywhere.Y3. Afterwards the output is the same, every run replays to its own journal, and the store passes its checks.

import { encode, RepriseError } from "../base/index.ts";
import type {
  AnyTask,
  ClaimMessagesOutcome,
  Definition,
  FireDueOutcome,
  InputOf,
  OutputOf,
  Store,
} from "../kernel/index.ts";
import { checkOutbox, type EngineOptions } from "../engine/index.ts";
import { createCrashWorld } from "./crash-world.ts";
import type { TestWorld } from "./test-process.ts";
import type { WriteInterceptor } from "./crashable-store.ts";
import type { Stub } from "./stub.ts";
import { CrashableTestEngine, type TestEngine } from "./test-engine.ts";

/** Options of `crashEverywhere`. */
export interface CrashOptions<D extends Definition> {
  /** The workflow's children and tasks; the workflow itself may be omitted. */
  definitions?: readonly (Definition | AnyTask)[];
  stubs?: readonly Stub[];
  /** The handlers of outbox messages. After a crash a message may be delivered again, with the same key. */
  outbox?: EngineOptions<never>["outbox"];
  /**
   * Sends the run the messages it waits for, for example resolves its promises. Called after the run was started, and again after
   * a crash; it may then resolve a promise a second time.
   */
  drive?: (engine: TestEngine<D>, id: string) => Promise<void>;
}

/** The result of `crashEverywhere`. */
export interface CrashReport<Output> {
  readonly output: Output;
  /** The number of simulated crashes. */
  readonly crashes: number;
}

/** crash-everywhere.Y1. Where one execution crashes. */
interface CrashPoint {
  readonly batch: number;
  readonly when: "before" | "after";
}

const RUN_ID = "crash-everywhere";

/**
 * Runs a workflow once without a crash, then once per commit with a crash just before it and once with a crash just after it.
 *
 * @example
 * ```ts
 * import { workflow } from "reprise";
 * import { crashEverywhere, stub } from "reprise/testing";
 * const trial = workflow("trial", async (ctx, user: string) => {
 *   await ctx.sleep("30 days");
 *   return ctx.run("remind", user, (_op, to) => `sent to ${to}`);
 * });
 * const { output, crashes } = await crashEverywhere(trial, "ann", { stubs: [stub("remind", () => "sent")] });
 * console.log(`${output} after each of ${crashes} crashes`);
 * ```
 */
export async function crashEverywhere<D extends Definition>(
  definition: D,
  input: InputOf<D>,
  options: CrashOptions<D> = {},
): Promise<CrashReport<OutputOf<D>>> {
  const trial = new Trial(definition, input, options as unknown as CrashOptions<Definition>);
  const reference = await trial.run(undefined);
  let crashes = 0;
  for (const batch of reference.batches)
    for (const when of ["before", "after"] as const) {
      const crashed = await trial.run({ batch, when });
      if (crashed.hasCrashed) crashes += 1;
      if (crashed.text !== reference.text)
        throw failure(
          { batch, when },
          `the output is ${crashed.text}; without a crash it is ${reference.text}. Find code that runs again after a crash and is not deterministic`,
        );
    }
  return { output: reference.output as OutputOf<D>, crashes };
}

interface TrialOutcome {
  readonly output: unknown;
  readonly text: string;
  /** The numbers of the batches that wrote something. */
  readonly batches: readonly number[];
  readonly hasCrashed: boolean;
}

class Trial {
  readonly #definition: Definition;
  readonly #input: unknown;
  readonly #options: CrashOptions<Definition>;

  constructor(definition: Definition, input: unknown, options: CrashOptions<Definition>) {
    this.#definition = definition;
    this.#input = input;
    this.#options = options;
  }

  async run(crash: CrashPoint | undefined): Promise<TrialOutcome> {
    const { definitions = [], stubs = [] } = this.#options;
    const all = definitions.includes(this.#definition) ? definitions : [this.#definition, ...definitions];
    const world = { ...(await createCrashWorld(all, stubs)), outbox: checkOutbox(this.#options.outbox) };
    let engine: CrashableTestEngine | undefined;
    try {
      const batches: number[] = [];
      let hasCrashed = false;
      const crashed = Promise.withResolvers<undefined>();
      const intercept = createInterceptor(batches, crash, () => {
        hasCrashed = true;
        engine?.process.crash();
        crashed.resolve(undefined);
      });
      const started = CrashableTestEngine.on(world, { intercept });
      // A crash during the start: the start may never resolve.
      engine = await Promise.race([started, crashed.promise]);
      if (hasCrashed) void started.then(({ process }) => process.crash());
      let output = engine && (await this.#runProcess(world, engine, crash));
      if (engine === undefined || hasCrashed) {
        engine = await CrashableTestEngine.on(world, { ignoresRepeats: true });
        output = await this.#runProcess(world, engine, crash);
      }
      await checkStore(world.store, engine, crash);
      await engine.process.core.drain();
      return { output, text: encode(output), batches, hasCrashed };
    } finally {
      engine?.process.core.crash();
      await world.store.close();
    }
  }

  async #isDelivered({ store, outbox }: TestWorld): Promise<boolean> {
    return outbox.size === 0 || (await store.info()).outbox.pending === 0;
  }

  /** One process: starts or finds the run, calls `drive`, and advances time until the run has ended or the process has crashed. */
  async #runProcess(world: TestWorld, engine: CrashableTestEngine, crash: CrashPoint | undefined): Promise<unknown> {
    const { process } = engine;
    try {
      const run = await engine.start(this.#definition, this.#input as undefined, { id: RUN_ID });
      await this.#options.drive?.(engine, RUN_ID);
      let ended = false;
      const result = run.result().finally(() => (ended = true));
      result.catch(() => {});
      for (;;) {
        const settled = await process.settle();
        if (process.hasCrashed || (ended && (await this.#isDelivered(world)))) break;
        const next = world.time.nextAt();
        if (next !== undefined) world.time.advanceTo(Math.max(next, world.time.now()));
        else if (ended)
          throw failure(
            crash,
            "the outbox has undelivered messages, because `outbox` has no handler for them. Add the handlers to the options",
          );
        else if (settled) throw await stuck(world.store, this.#options.drive !== undefined, crash);
      }
      return process.hasCrashed ? undefined : await result;
    } catch (error) {
      // Errors of a crashed process are ignored.
      if (process.hasCrashed) return undefined;
      throw error;
    }
  }
}

/** Records the batches that wrote something, and crashes at the given one. */
function createInterceptor(batches: number[], crash: CrashPoint | undefined, onCrash: () => void): WriteInterceptor {
  let count = 0;
  return async (apply) => {
    const batch = count++;
    const crashHere = crash?.batch === batch;
    if (crashHere && crash.when === "before") {
      onCrash();
      return new Promise(() => {});
    }
    const outcomes = await apply();
    if (outcomes.some(wroteSomething)) batches.push(batch);
    if (crashHere) {
      onCrash();
      return new Promise(() => {});
    }
    return outcomes;
  };
}

/** A poll without work wrote nothing. */
function wroteSomething(outcome: unknown): boolean {
  if (Array.isArray(outcome)) return outcome.length > 0;
  const { runs, ready, messages } = outcome as Partial<FireDueOutcome & ClaimMessagesOutcome>;
  if (messages !== undefined) return messages.length > 0;
  return runs === undefined || runs.length > 0 || ready !== 0;
}

/** crash-everywhere.Y3 */
async function checkStore(store: Store, engine: CrashableTestEngine, crash: CrashPoint | undefined): Promise<void> {
  for await (const { id, definition, generation } of engine.list()) {
    const verdict = await engine.get(definition, id).verify({ generation });
    if (verdict.status === "mismatch")
      throw failure(crash, `run ${id} does not replay to its journal, at ${verdict.where}: ${verdict.message}`);
  }
  const [problem] = await store.check();
  if (problem !== undefined) throw failure(crash, `the store breaks ${problem.invariant}: ${problem.message}`);
}

function failure(crash: CrashPoint | undefined, what: string): RepriseError {
  const where = crash === undefined ? "Without a crash" : `After a crash ${crash.when} batch ${crash.batch}`;
  return new RepriseError("INVARIANT", `${where}, ${what}.`, { details: { ...crash } });
}

/** The run has not ended, and no timer is pending. */
async function stuck(store: Store, driven: boolean, crash: CrashPoint | undefined): Promise<RepriseError> {
  const record = await store.findRun(RUN_ID);
  const open = new Map<string, string>();
  for (const { type, command, data } of record === undefined ? [] : await store.readJournal(record.run, 0)) {
    if (type === "PromiseCreated") open.set(command, (JSON.parse(data) as { promiseId: string }).promiseId);
    else if (type === "ChildWorkflowInitiated" || type === "TaskScheduled") open.set(command, command);
    else if (command !== "") open.delete(command);
  }
  const waits = [...open].map(([command, name]) => (command === name ? command : `the promise ${name}`));
  const where = crash === undefined ? "" : ` after a crash ${crash.when} batch ${crash.batch}`;
  return new RepriseError(
    "USAGE",
    `crashEverywhere: the run is ${record?.status ?? "missing"}${where} and waits for ${waits.join(", ") || "nothing recorded in the journal"}, and no timer is pending. ${
      driven ? "`drive` must send everything the run waits for." : "Add `drive: async (engine, id) => …` that sends it."
    }`,
  );
}
