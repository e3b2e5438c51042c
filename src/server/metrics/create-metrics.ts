// createMetrics: the metrics of a process and its store as one page in the OpenMetrics text format.

import { RepriseError } from "../../base/index.ts";
import { openStoreOf, type Client } from "../../engine/index.ts";
import type { Definition, Store } from "../../kernel/index.ts";
import { ProcessMetrics } from "./process-metrics.ts";
import { StoreMetrics } from "./store-metrics.ts";

export const OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/** The metrics of an engine or a client, for a page of your own. */
export interface Metrics extends Disposable {
  /** The content type of `text`. */
  readonly contentType: string;
  /** The page: counters since this object was made, gauges read from the store, at most every 5 seconds. */
  text(): Promise<string>;
  /** Stops counting. */
  close(): void;
}

/**
 * Counts what this process does and reads what its store holds, for Prometheus. `createServer` has it at `/metrics`.
 *
 * @example
 * ```ts
 * import { createEngine, workflow } from "reprise";
 * import { createMetrics } from "reprise/server";
 * const hello = workflow("hello", async (ctx, name: string) => ctx.run("greet", () => `Hello, ${name}`));
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [hello] });
 * using metrics = createMetrics(engine);
 * await (await engine.start(hello, "Ada")).result();
 * console.log((await metrics.text()).includes('reprise_runs_ended_total{definition="hello",status="completed"} 1'));
 * ```
 */
export function createMetrics<Defs extends Definition>(engine: Client<Defs>): Metrics {
  const store = openStoreOf(engine);
  if (store === undefined)
    throw new RepriseError("BAD_OPTIONS", "createMetrics: pass what createEngine or createClient returned.");
  return new MetricsPage(store);
}

export class MetricsPage implements Metrics {
  readonly contentType = OPENMETRICS_TYPE;
  readonly process = new ProcessMetrics();
  readonly #store: Store;
  readonly #ofStore: StoreMetrics;

  constructor(store: Store) {
    this.#store = store;
    this.#ofStore = new StoreMetrics(store);
  }

  async text(): Promise<string> {
    await this.#ofStore.refresh(this.#store.now());
    const families = [...this.process.families, ...this.#ofStore.families].filter(({ samples }) => samples.size > 0);
    return `${families.map((family) => family.text()).join("\n")}\n# EOF\n`;
  }

  close(): void {
    this.process.close();
  }

  [Symbol.dispose](): void {
    this.close();
  }
}
