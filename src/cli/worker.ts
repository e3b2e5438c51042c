// reprise worker: works on the runs of a store until it is told to stop.

import { subscribe } from "node:diagnostics_channel";
import { hostname } from "node:os";
import { RepriseError, toMs, type Duration } from "../base/index.ts";
import { isServer, shownUrl, sqlitePathOf } from "../stores/index.ts";
import { createEngine } from "../engine/index.ts";
import { flowBody, isFlow } from "../flow/index.ts";
import { graphRunBody } from "../graph/index.ts";
import {
  DEFAULT_QUEUE,
  isTask,
  queue,
  taskBody,
  type Queue,
  type RepriseEvent,
  type TaskBody,
} from "../kernel/index.ts";
import { isWorkflow, workflowBody } from "../workflow/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { loadDefinitions, loadEngineOptions, type Loaded } from "./load-definitions.ts";
import { logLines, type LogLines } from "./log-lines.ts";
import { paint } from "./output.ts";
import { payloadOptions } from "./payload-module.ts";
import { onInterrupt } from "./signals.ts";
import { countOf, plain, showValue } from "./text.ts";

export interface WorkerOptions extends GlobalOptions {
  readonly concurrency?: number;
  readonly queues?: readonly string[];
  readonly labels?: readonly string[];
  readonly lease?: Duration;
  readonly grace: Duration;
  readonly events?: boolean;
}

export async function worker(file: string, options: WorkerOptions): Promise<number> {
  refuseMemory(options.store);
  toMs(options.grace, "--grace");
  const definitions = await loadDefinitions(file);
  const queues = options.queues?.map((name) => queueCalled(name, definitions));
  for (const label of options.labels ?? []) checkLabel(label, definitions);
  const log = logLines(options.json);
  if (options.events === true) logEvents(log);
  const engine = await createEngine({
    store: options.store,
    definitions,
    logger: log,
    ...payloadOptions(),
    ...(await loadEngineOptions(file)),
    worker: {
      ...(options.concurrency !== undefined && { concurrency: options.concurrency }),
      ...(options.lease !== undefined && { lease: options.lease }),
      ...(queues && { queues }),
      ...(options.labels && { labels: options.labels }),
    },
  });
  onInterrupt({
    isUsualEnd: true,
    say: () => log.event("worker.stopping", "stopping: what is at work may finish; once more to stop at once", {}),
    cleanUp: async () => {
      await engine.close({ grace: options.grace });
      log.event("worker.stopped", "stopped", {});
    },
  });
  const name = `${hostname()}/${process.pid}`;
  log.event("worker.started", startText(name, definitions, options.store), {
    worker: name,
    store: shownUrl(options.store),
    workflows: namesOf(definitions, "workflow"),
    graphs: namesOf(definitions, "graph"),
    flows: namesOf(definitions, "flow"),
    tasks: namesOf(definitions, "task"),
    queues: options.queues ?? null,
    labels: options.labels ?? [],
  });
  return new Promise<number>(() => {});
}

/** The queue itself, with its limits, as a task, a workflow or a node of a flow of the file names it. */
function queueCalled(name: string, definitions: Loaded): Queue {
  if (name === DEFAULT_QUEUE) return queue(DEFAULT_QUEUE);
  const there = definitions.flatMap(routedIn).flatMap(({ line }) => (line === undefined ? [] : [line.queue]));
  const found = there.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = [...new Set([DEFAULT_QUEUE, ...there.map((one) => one.name)])].join(", ");
  throw new RepriseError(
    "USAGE",
    `--queues: nothing in this file waits in a queue called ${name}; there are: ${names}.`,
  );
}

/** Whatever of a definition is claimed by itself. */
function routedIn(one: Loaded[number]): readonly Pick<TaskBody, "line" | "label">[] {
  if (isFlow(one)) return [{ line: undefined, label: flowBody(one).label }, ...flowBody(one).nodes.values()];
  return [isTask(one) ? taskBody(one) : isWorkflow(one) ? workflowBody(one) : graphRunBody(one)];
}

function checkLabel(label: string, definitions: Loaded): void {
  const labels = definitions.flatMap(routedIn).flatMap((one) => (one.label === undefined ? [] : [one.label]));
  if (labels.includes(label)) return;
  const there = labels.length === 0 ? "nothing in it has one" : `there are: ${[...new Set(labels)].join(", ")}`;
  throw new RepriseError("USAGE", `--labels: nothing in this file has the label ${label}; ${there}.`);
}

/** Nobody could ever start a run there. */
export function refuseMemory(store: string): void {
  if (isServer(store) || sqlitePathOf(store) !== ":memory:") return;
  throw new RepriseError(
    "BAD_STORE_URL",
    "A store in memory can be reached by its own process only; a worker needs a file, such as sqlite:shop.db, or a database server.",
  );
}

function namesOf(definitions: Loaded, kind: Loaded[number]["kind"]): string[] {
  return definitions.filter((definition) => definition.kind === kind).map(({ name }) => name);
}

function startText(name: string, definitions: Loaded, store: string): string {
  const counts = (["workflow", "graph", "flow", "task"] as const).flatMap((kind) => {
    const names = namesOf(definitions, kind);
    return names.length === 0 ? [] : [`${countOf(names.length, kind, `${kind}s`)} (${names.map(plain).join(", ")})`];
  });
  return `${paint("green", "working")} as ${plain(name)} on ${plain(shownUrl(store))}: ${counts.join(", ")}`;
}

function logEvents(log: LogLines): void {
  subscribe("reprise", (message) => {
    const { event, ...data } = message as RepriseEvent;
    if (event === "commit") return;
    const shown = Object.entries(data).map(([key, value]) => `${key} ${showValue(value)}`);
    log.event(event, `${event} ${paint("dim", shown.join(", "))}`, data);
  });
}
