// reprise worker: runs a worker until it receives SIGTERM or Ctrl-C.

import { subscribe } from "node:diagnostics_channel";
import { hostname } from "node:os";
import { RepriseError, toMs, type Duration, type Size } from "../base/index.ts";
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
import { onInterrupt, STOPPING } from "./signals.ts";
import { pluralize, plain, showValue } from "./text.ts";

export interface WorkerOptions extends GlobalOptions {
  readonly concurrency?: number;
  readonly queues?: readonly string[];
  readonly labels?: readonly string[];
  readonly lease?: Duration;
  readonly memory?: Size;
  readonly grace: Duration;
  readonly events?: boolean;
}

export async function worker(file: string, options: WorkerOptions): Promise<number> {
  refuseMemoryStore(options.store);
  toMs(options.grace, "--grace");
  const definitions = await loadDefinitions(file);
  const queues = options.queues?.map((name) => getQueue(name, definitions));
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
      ...(options.memory !== undefined && { memory: options.memory }),
      ...(queues && { queues }),
      ...(options.labels && { labels: options.labels }),
    },
  });
  onInterrupt({
    isService: true,
    announce: () => log.event("worker.stopping", STOPPING, {}),
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

/** The queue with its limits, as a task, a workflow or a flow node of the file declares it. */
function getQueue(name: string, definitions: Loaded): Queue {
  if (name === DEFAULT_QUEUE) return queue(DEFAULT_QUEUE);
  const known = definitions
    .flatMap(routesOf)
    .flatMap(({ slotOptions }) => (slotOptions === undefined ? [] : [slotOptions.queue]));
  const found = known.find((one) => one.name === name);
  if (found !== undefined) return found;
  const names = [...new Set([DEFAULT_QUEUE, ...known.map((one) => one.name)])].join(", ");
  throw new RepriseError("USAGE", `--queues: no definition in this file uses the queue ${name}. It uses: ${names}.`);
}

/** The parts of a definition that workers claim separately. */
function routesOf(one: Loaded[number]): readonly Pick<TaskBody, "slotOptions" | "label">[] {
  if (isFlow(one)) return [{ slotOptions: undefined, label: flowBody(one).label }, ...flowBody(one).nodes.values()];
  return [isTask(one) ? taskBody(one) : isWorkflow(one) ? workflowBody(one) : graphRunBody(one)];
}

function checkLabel(label: string, definitions: Loaded): void {
  const labels = definitions.flatMap(routesOf).flatMap((one) => (one.label === undefined ? [] : [one.label]));
  if (labels.includes(label)) return;
  const known = labels.length === 0 ? "It has no labels" : `It has: ${[...new Set(labels)].join(", ")}`;
  throw new RepriseError("USAGE", `--labels: no definition in this file has the label ${label}. ${known}.`);
}

/** No other process could start a run in such a store. */
export function refuseMemoryStore(store: string): void {
  if (isServer(store) || sqlitePathOf(store) !== ":memory:") return;
  throw new RepriseError(
    "BAD_STORE_URL",
    "A store in memory exists only inside its process. Name a file or a database server: --store sqlite:shop.db.",
  );
}

function namesOf(definitions: Loaded, kind: Loaded[number]["kind"]): string[] {
  return definitions.filter((definition) => definition.kind === kind).map(({ name }) => name);
}

function startText(name: string, definitions: Loaded, store: string): string {
  const counts = (["workflow", "graph", "flow", "task"] as const).flatMap((kind) => {
    const names = namesOf(definitions, kind);
    return names.length === 0 ? [] : [`${pluralize(names.length, kind, `${kind}s`)} (${names.map(plain).join(", ")})`];
  });
  return `${paint("green", "started")} worker ${plain(name)} on ${plain(shownUrl(store))}: ${counts.join(", ")}`;
}

function logEvents(log: LogLines): void {
  subscribe("reprise", (message) => {
    const { event, ...data } = message as RepriseEvent;
    if (event === "commit") return;
    const shown = Object.entries(data).map(([key, value]) => `${key} ${showValue(value)}`);
    log.event(event, `${event} ${paint("dim", shown.join(", "))}`, data);
  });
}
