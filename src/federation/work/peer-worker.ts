// PeerWorker: executes tasks of other sites. It has no store: the home of a run keeps everything about it.
//
// peer-worker.P1. A function is called when its task is registered here and its input is present and verified.
// peer-worker.P2. The function gets the context that it would have at home: run, attempt, execution, idempotency key, timeout, signal.
// peer-worker.P3. An offer is renewed from its claim until the home has answered its end. When the home no longer waits for
//   it, its function is aborted. When the home cannot be reached, the function continues, and its end is posted until the home answers.
// peer-worker.P4. Every end is signed: the statement names the step, its input and its result by key.

import {
  CancelledError,
  decode,
  RepriseError,
  RetryLaterError,
  valueKey,
  type Clock,
  type PayloadLimits,
  type Timers,
} from "../../base/index.ts";
import { taskBody, type AnyTask, type Logger, isTask, type Definition, type TaskBody } from "../../kernel/index.ts";
import { ProcessLog } from "../../process/index.ts";
import type { SigningKey } from "../../receipts/index.ts";
import { Attempt } from "../../worker/index.ts";
import { entryData } from "../../workflow/index.ts";
import { HomeLink } from "./home-link.ts";
import { OfferClient, type WorkHome } from "./offer-client.ts";
import type { End, Offer } from "./offer.ts";
import { stepStatement, taskStep, type StepEnd } from "./step-statement.ts";

/** Values that this site has, by key. */
export interface InputCache {
  /** The text of a value. */
  find(key: string): string | undefined;
  keep(key: string, text: string): void;
}

export interface PeerWorkerOptions {
  /** Tasks that this site executes for others; everything else in the list is ignored. */
  readonly definitions: readonly (Definition | AnyTask)[];
  readonly homes: readonly WorkHome[];
  /** Only tasks with one of these labels; default: every task that has a label. */
  readonly labels?: readonly string[];
  /** How many functions run at once. */
  readonly concurrency?: number;
  /** Signs what this site says about the steps it executed. */
  readonly key: SigningKey;
  readonly inputs?: InputCache;
  readonly runtime: string;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly limits?: PayloadLimits;
}

const CONCURRENCY = 256;

/** Executes tasks for other sites, until it is stopped. */
export class PeerWorker {
  readonly #options: PeerWorkerOptions;
  readonly #tasks: ReadonlyMap<string, TaskBody>;
  readonly #log: ProcessLog;
  readonly #links: readonly HomeLink[];
  readonly #concurrency: number;
  #running = 0;

  constructor(options: PeerWorkerOptions) {
    this.#options = options;
    const { labels, homes, logger, clock } = options;
    this.#concurrency = options.concurrency ?? CONCURRENCY;
    this.#tasks = new Map(
      options.definitions
        .filter((one): one is AnyTask => isTask(one))
        .map((task) => [task.name, taskBody(task)] as const)
        .filter(([, { label }]) => label !== undefined && (labels === undefined || labels.includes(label))),
    );
    if (this.#tasks.size === 0)
      throw new RepriseError(
        "BAD_OPTIONS",
        `No task of \`definitions\` has ${labels === undefined ? "a label" : `one of the labels ${labels.join(", ")}`}, so this site has nothing to execute for others. Pass task("name", { label: "gpu" }, …).`,
      );
    this.#log = new ProcessLog(
      (level, message, data) => logger[level]?.(message, data),
      () => clock.now(),
    );
    this.#links = homes.map(
      (home) =>
        new HomeLink({
          client: new OfferClient(home),
          tasks: [...this.#tasks.keys()],
          clock,
          timers: options.timers,
          free: () => Math.max(0, this.#concurrency - this.#running),
          execute: (offer, link) => this.#execute(offer, link),
          report: (error) => this.#log.report(error),
        }),
    );
  }

  start(): void {
    for (const link of this.#links) link.start();
  }

  /** Claims nothing more, waits for what runs until the grace period ends, and aborts the rest. The homes offer it to others. */
  async stop(graceMs = 0): Promise<void> {
    await Promise.all(this.#links.map((link) => link.stop(graceMs)));
    this.#log.stop();
  }

  /** How many functions run. */
  get runningCount(): number {
    return this.#running;
  }

  async #execute(offer: Offer, link: HomeLink): Promise<void> {
    const body = this.#tasks.get(offer.task);
    // peer-worker.P1
    if (body === undefined) return link.end({ offer: offer.offer, declined: `no task is named ${offer.task}` });
    this.#running += 1;
    try {
      const input = offer.input === undefined ? undefined : await this.#input(offer.input, link);
      if (!link.holds(offer.offer)) return;
      const startedAt = this.#options.clock.now();
      const from = this.#options.clock.monotonic();
      const ended = await this.#call(body, offer, input, link);
      if (ended === undefined) return;
      const tookMs = Math.round(this.#options.clock.monotonic() - from);
      const { key, runtime } = this.#options;
      const { run, generation, attempt, execution } = offer;
      const step = taskStep(offer.command, offer.task, input, ended);
      const executed = { origin: key.origin, run, generation, attempt, execution, step, runtime, startedAt, tookMs };
      await link.end({ offer: offer.offer, statement: stepStatement(executed, key), ...ended });
    } catch (error) {
      this.#log.report(error);
      await link.end({ offer: offer.offer, declined: (error as Error).message });
    } finally {
      this.#running -= 1;
      for (const one of this.#links) one.onFreed();
    }
  }

  /** offer.O2 */
  async #input(key: string, link: HomeLink): Promise<string> {
    const { inputs } = this.#options;
    const known = inputs?.find(key);
    if (known !== undefined && valueKey(known) === key) return known;
    const text = await link.input(key);
    if (valueKey(text) !== key)
      throw new RepriseError(
        "CONTENT_DAMAGED",
        `${link.home.name} sent a value for the key ${key} that has the key ${valueKey(text)}, so the task was not executed.`,
      );
    inputs?.keep(key, text);
    return text;
  }

  /** peer-worker.P2. Undefined: the home no longer waits for it. */
  #call(body: TaskBody, offer: Offer, input: string | undefined, link: HomeLink): Promise<EndOf | undefined> {
    const { timers, limits } = this.#options;
    const attempt = new Attempt({
      runId: offer.run,
      generation: offer.generation,
      step: offer.command,
      epoch: offer.epoch,
      name: offer.task,
      // Of the home's run, whose definition the offer does not name.
      definition: "",
      kind: "task",
      now: () => this.#options.clock.now(),
      attempt: offer.attempt,
      execution: offer.execution,
      timeoutMs: offer.timeoutMs,
      idempotencyKey: offer.idempotencyKey,
      timers,
      logger: (run, step) => this.#log.logger(run, step),
    });
    return new Promise((resolve) => {
      const failed = (error: unknown): void =>
        resolve({
          error: entryData.errorText(error),
          ...(error instanceof RetryLaterError && { retryAfterMs: error.afterMs }),
        });
      link.onGone(offer.offer, () => {
        attempt.abandon(new CancelledError("The home of the run no longer waits for this task."));
        resolve(undefined);
      });
      attempt.start(() => body.run(attempt, input === undefined ? undefined : decode(input)), {
        settled: () => {},
        completed: (value) => {
          try {
            const result = entryData.encodeNamed(`The result of task ${offer.task}`, value, limits);
            resolve(result === undefined ? {} : { result });
          } catch (notData) {
            failed(notData);
          }
        },
        failed,
      });
    });
  }
}

type EndOf = StepEnd & Pick<Extract<End, { statement: string }>, "result" | "error" | "retryAfterMs">;
