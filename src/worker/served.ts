// Served: what this worker claims. Everything it has, or only what belongs to the queues it names.

import { DEFAULT_QUEUE, nodeRoute, type DefinitionVersion, type LineOptions } from "../kernel/index.ts";
import type { Registry } from "./registry.ts";

export class Served {
  readonly definitions: readonly DefinitionVersion[];
  /** Tasks, and routes of flows' nodes. */
  readonly items: readonly string[];
  readonly #definitions: ReadonlySet<string>;
  readonly #tasks: ReadonlySet<string>;

  constructor(registry: Registry, queues: readonly string[] | undefined) {
    const wanted = queues && new Set(queues);
    const serves = (line: LineOptions | undefined): boolean =>
      wanted === undefined || wanted.has(line?.queue.name ?? DEFAULT_QUEUE);
    this.definitions = registry.definitions.filter(({ name, version }) =>
      serves(registry.findWorkflow(name, version)?.line),
    );
    const tasks = registry.taskNames.filter((name) => serves(registry.findTask(name)?.line));
    this.items = [...tasks, ...routesOf(registry, serves)];
    this.#definitions = new Set(this.definitions.map(({ name }) => name));
    this.#tasks = new Set(tasks);
  }

  hasDefinition(name: string): boolean {
    return this.#definitions.has(name);
  }
  hasTask(name: string): boolean {
    return this.#tasks.has(name);
  }
}

/** Nodes that stand in no queue of their own go with the default one. */
function routesOf(registry: Registry, serves: (line: LineOptions | undefined) => boolean): readonly string[] {
  return [...registry.flows].flatMap(({ name, version, nodes }) => {
    const lines = [...nodes.values()].flatMap(({ line }) =>
      line !== undefined && serves(line) ? [line.queue.name] : [],
    );
    const queues = [...new Set(lines)].map((queue) => nodeRoute(name, version, queue));
    return serves(undefined) ? [nodeRoute(name, version), ...queues] : queues;
  });
}
