// Process metrics: what this process did, counted from its events (kernel/events.ts). Nothing is read from the store.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { RepriseEvent } from "../../kernel/index.ts";
import { Counter, Histogram, type AnyFamily } from "./metric-family.ts";

const STEP_BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
const RUN_BOUNDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600, 86_400, 604_800];
const COMMIT_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export class ProcessMetrics {
  readonly #runsStarted = new Counter({
    name: "reprise_runs_started",
    help: "Runs whose first turn this process executed.",
    labels: ["definition"],
  });
  readonly #runsEnded = new Counter({
    name: "reprise_runs_ended",
    help: "Runs that this process ended.",
    labels: ["definition", "status"],
  });
  readonly #runDuration = new Histogram({
    name: "reprise_run_duration_seconds",
    help: "Time from the creation of a run to its end.",
    labels: ["definition"],
    bounds: RUN_BOUNDS,
  });
  readonly #stepDuration = new Histogram({
    name: "reprise_step_duration_seconds",
    help: "Time of one execution of a step, without its wait in a queue.",
    labels: ["definition", "name", "kind"],
    bounds: STEP_BOUNDS,
  });
  readonly #attempts = new Counter({
    name: "reprise_attempts",
    help: "Executions of steps by their outcome.",
    labels: ["definition", "name", "outcome"],
  });
  readonly #commits = new Counter({ name: "reprise_commits", help: "Transactions of this process on the store." });
  readonly #commitTime = new Histogram({
    name: "reprise_commit_seconds",
    help: "Time of one transaction on the store.",
    bounds: COMMIT_BOUNDS,
  });
  readonly #leasesLost = new Counter({
    name: "reprise_leases_lost",
    help: "Runs and workers of this process whose lease was taken over.",
  });
  readonly #budgetReached = new Counter({
    name: "reprise_budget_reached",
    help: "Calls that did not fit into the budget of their run.",
    labels: ["definition"],
  });
  readonly #messages = new Counter({
    name: "reprise_messages",
    help: "Deliveries of outbox messages by their outcome.",
    labels: ["destination", "outcome"],
  });
  readonly #requests = new Histogram({
    name: "reprise_http_request_duration_seconds",
    help: "Time until the head of the response.",
    labels: ["route", "method", "status"],
    bounds: STEP_BOUNDS,
    limit: 300,
  });
  readonly #tokens = new Counter({
    name: "reprise_ai_tokens",
    help: "Tokens of the answers of models: input, cached (a part of input), output.",
    labels: ["model", "type"],
  });
  readonly #usd = new Counter({
    name: "reprise_ai_cost_usd",
    help: "What the answers of models cost, for models with a price.",
    labels: ["model"],
  });
  readonly families: readonly AnyFamily[] = [
    this.#runsStarted,
    this.#runsEnded,
    this.#runDuration,
    this.#stepDuration,
    this.#attempts,
    this.#commits,
    this.#commitTime,
    this.#leasesLost,
    this.#budgetReached,
    this.#messages,
    this.#requests,
    this.#tokens,
    this.#usd,
  ];

  constructor() {
    subscribe("reprise", this.#onEvent);
    // Without labels, a counter that never counted is 0.
    this.#commits.add([], 0);
    this.#leasesLost.add([], 0);
  }

  close(): void {
    unsubscribe("reprise", this.#onEvent);
  }

  onRequest(route: string, method: string, status: number, tookMs: number): void {
    this.#requests.observe([route, method, String(status)], tookMs / 1_000);
  }

  readonly #onEvent = (message: unknown): void => {
    const event = message as RepriseEvent;
    switch (event.event) {
      case "run.started":
        return this.#runsStarted.add([event.definition]);
      case "run.ended":
        this.#runsEnded.add([event.definition, event.status]);
        return this.#runDuration.observe([event.definition], event.tookMs / 1_000);
      case "attempt.ended": {
        const { definition, name, kind, outcome, tookMs } = event;
        this.#attempts.add([definition, name, outcome]);
        return this.#stepDuration.observe([definition, name, kind], tookMs / 1_000);
      }
      case "model.answered": {
        const { model, inputTokens, cachedTokens, outputTokens, usd } = event;
        this.#tokens.add([model, "input"], inputTokens);
        this.#tokens.add([model, "cached"], cachedTokens);
        this.#tokens.add([model, "output"], outputTokens);
        return usd === undefined ? undefined : this.#usd.add([model], usd);
      }
      case "commit":
        this.#commits.add([]);
        return this.#commitTime.observe([], event.tookMs / 1_000);
      case "budget.reached":
        return this.#budgetReached.add([event.definition]);
      case "lease.lost":
        return this.#leasesLost.add([]);
      case "message.delivered":
        return this.#messages.add([event.destination, "delivered"]);
      case "message.failed":
        return this.#messages.add([event.destination, "failed"]);
      default:
    }
  };
}
