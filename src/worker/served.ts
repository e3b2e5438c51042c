// Served: what this worker claims. Everything it has, or only what belongs to the queues it names; of what has a label, only
// what it has the label for (LB1).

import {
  DEFAULT_QUEUE,
  nodeRoute,
  type DefinitionVersion,
  type Labels,
  type LeftToOthers,
  type LineOptions,
} from "../kernel/index.ts";
import type { FlowBody } from "../flow/index.ts";
import type { Registry } from "./registry.ts";

/** How a piece of work is routed, besides by its name. */
interface Routed {
  readonly line: LineOptions | undefined;
  readonly label: string | undefined;
}

export class Served {
  readonly definitions: readonly DefinitionVersion[];
  /** Tasks, and routes of flows' nodes. */
  readonly items: readonly string[];
  /** Known here, and not claimed. */
  readonly left: readonly LeftToOthers[];
  readonly #queues: ReadonlySet<string> | undefined;
  readonly #labels: Labels;
  readonly #definitions: ReadonlySet<string>;
  readonly #items: ReadonlySet<string>;

  constructor(registry: Registry, queues: readonly string[] | undefined, labels: Labels) {
    this.#queues = queues && new Set(queues);
    this.#labels = labels;
    const definitions = registry.definitions.map((one) => ({
      ...one,
      body: registry.getWorkflow(one.name, one.version),
    }));
    const tasks = registry.taskNames.map((name) => ({ name, body: registry.getTask(name) }));
    this.definitions = definitions
      .filter(({ body }) => this.#takes(body))
      .map(({ name, version }) => ({ name, version }));
    this.items = [
      ...tasks.filter(({ body }) => this.#takes(body)).map(({ name }) => name),
      ...[...registry.flows].flatMap((flow) => this.#routesOf(flow)),
    ];
    this.left = [...definitions, ...tasks]
      .filter(({ body }) => !this.#takes(body))
      .map(({ body, ...one }) => ({
        ...one,
        ...(body.line && { queue: body.line.queue.name }),
        ...(body.label !== undefined && { label: body.label }),
      }));
    this.#definitions = new Set(this.definitions.map(({ name, version }) => `${name}@${version}`));
    this.#items = new Set(this.items);
  }

  hasDefinition(name: string, version: number): boolean {
    return this.#definitions.has(`${name}@${version}`);
  }
  /** By the name of a task, or the route of a node. */
  hasItem(name: string): boolean {
    return this.#items.has(name);
  }

  hasLabel(label: string | undefined): boolean {
    return this.#labels.have(label);
  }

  #takes({ line, label }: Routed): boolean {
    const queue = line?.queue.name ?? DEFAULT_QUEUE;
    return (this.#queues === undefined || this.#queues.has(queue)) && this.#labels.have(label);
  }

  /** Nodes that have neither queue nor label of their own go with the run, and with the default queue. */
  #routesOf({ name, version, label, nodes }: FlowBody): readonly string[] {
    const own = [...nodes.values()]
      .filter((node) => node.line !== undefined || node.label !== undefined)
      .filter((node) => this.#takes({ line: node.line, label: node.label ?? label }))
      .map((node) => nodeRoute(name, version, node.line?.queue.name, node.label));
    const rest = this.#takes({ line: undefined, label }) ? [nodeRoute(name, version)] : [];
    return [...rest, ...new Set(own)];
  }
}
