// Store with runs: a store on disk whose runs were created by an engine that has closed.

import { createClient, createEngine, type AnyTask, type Definition, type RunStatus } from "reprise";
import { command, TemporaryFolder, type Finished } from "./cli-process.ts";

const SILENT = { info: () => {}, warn: () => {}, error: () => {} };

interface Start {
  readonly id: string;
  readonly what: Definition;
  readonly input?: unknown;
  readonly tags?: readonly string[];
  /** The status to wait for before the engine closes. */
  readonly until: RunStatus;
}

export class StoreWithRuns implements Disposable {
  readonly folder = new TemporaryFolder();
  readonly url: string;
  readonly #definitions: readonly (Definition | AnyTask)[];

  constructor(definitions: readonly (Definition | AnyTask)[]) {
    this.url = `sqlite:${this.folder.file("shop.db")}`;
    this.#definitions = definitions;
  }

  async start(...starts: readonly Start[]): Promise<this> {
    await using engine = await createEngine({ store: this.url, definitions: this.#definitions, logger: SILENT });
    for (const { id, what, input, tags = [], until } of starts) {
      const run = await engine.start(what, input as undefined, { id, tags });
      while ((await run.info()).status !== until) await new Promise((resolve) => setImmediate(resolve));
    }
    return this;
  }

  /** Runs an engine until the run has ended, and returns its outcome. */
  async finish(
    id: string,
  ): Promise<{ readonly status: RunStatus; readonly output?: unknown; readonly error?: unknown }> {
    await using engine = await createEngine({ store: this.url, definitions: this.#definitions, logger: SILENT });
    const found = await engine.find(id);
    if (found === undefined) throw new Error(`There is no run ${id}.`);
    const run = engine.get(found.definition, id);
    const outcome = await run.result().then(
      (output: unknown) => ({ output }),
      (error: unknown) => ({ error }),
    );
    return { status: (await run.info()).status, ...outcome };
  }

  cli(...args: readonly string[]): Promise<Finished> {
    return command([...args, "--store", this.url]);
  }

  async statusOf(id: string): Promise<RunStatus | undefined> {
    await using engine = await createClient({ store: this.url, definitions: this.#definitions });
    return (await engine.find(id))?.status;
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}
