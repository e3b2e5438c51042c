// ClaimFilter: which work this worker claims. It claims work of its registered definitions and tasks, restricted to its
// queues, if it names any. It claims labeled work only if it has the label (label.L1).

import {
  DEFAULT_QUEUE,
  nodeRoute,
  type DefinitionVersion,
  type Labels,
  type UnclaimedDefinition,
  type QueueSlotOptions,
} from "../kernel/index.ts";
import { hasKey, type FlowBody } from "../flow/index.ts";
import type { Registry } from "../process/index.ts";

/** How work is routed, besides by its name. */
interface Routed {
  readonly slotOptions: QueueSlotOptions | undefined;
  readonly label: string | undefined;
}

export class ClaimFilter {
  readonly definitions: readonly DefinitionVersion[];
  /** Names of tasks, and routes of flow nodes. */
  readonly items: readonly string[];
  /** Registered here, and not claimed because of its queue or label. */
  readonly excluded: readonly UnclaimedDefinition[];
  readonly #queues: ReadonlySet<string> | undefined;
  readonly #labels: Labels;
  readonly #definitions: ReadonlySet<string>;
  readonly #items: ReadonlySet<string>;
  /** The names of tasks, and the routes of flow nodes, by their queue. */
  readonly #inQueue = new Map<string, string[]>();

  constructor(registry: Registry, queues: readonly string[] | undefined, labels: Labels) {
    this.#queues = queues && new Set(queues);
    this.#labels = labels;
    const definitions = registry.definitions.map((one) => ({
      ...one,
      body: registry.getWorkflow(one.name, one.version),
    }));
    const tasks = registry.taskNames.map((name) => ({ name, body: registry.getTask(name) }));
    this.definitions = definitions
      .filter(({ body }) => this.#matches(body))
      .map(({ name, version }) => ({ name, version }));
    this.items = [
      ...tasks.filter(({ body }) => this.#matches(body)).map(({ name }) => name),
      ...[...registry.flows].flatMap((flow) => this.#routesOf(flow)),
    ];
    this.excluded = [...definitions, ...tasks]
      .filter(({ body }) => !this.#matches(body))
      .map(({ body, ...one }) => ({
        ...one,
        ...(body.slotOptions && { queue: body.slotOptions.queue.name }),
        ...(body.label !== undefined && { label: body.label }),
      }));
    this.#definitions = new Set(this.definitions.map(({ name, version }) => `${name}@${version}`));
    this.#items = new Set(this.items);
    for (const { name, body } of tasks) this.#addToQueue(body.slotOptions, name);
    for (const { name, version, nodes } of registry.flows)
      for (const { slotOptions, label } of nodes.values())
        this.#addToQueue(slotOptions, nodeRoute(name, version, slotOptions?.queue.name, label));
  }

  #addToQueue(slotOptions: QueueSlotOptions | undefined, item: string): void {
    if (slotOptions === undefined || !this.#items.has(item)) return;
    const { name } = slotOptions.queue;
    const items = this.#inQueue.get(name);
    if (items === undefined) this.#inQueue.set(name, [item]);
    else if (!items.includes(item)) items.push(item);
  }

  hasDefinition(name: string, version: number): boolean {
    return this.#definitions.has(`${name}@${version}`);
  }
  /** `name` is the name of a task, or the route of a node. */
  hasItem(name: string): boolean {
    return this.#items.has(name);
  }

  /** What this worker claims from a queue. */
  itemsOf(queue: string): readonly string[] {
    return this.#inQueue.get(queue) ?? [];
  }

  hasLabel(label: string | undefined): boolean {
    return this.#labels.includes(label);
  }

  #matches({ slotOptions, label }: Routed): boolean {
    const queue = slotOptions?.queue.name ?? DEFAULT_QUEUE;
    return (this.#queues === undefined || this.#queues.has(queue)) && this.#labels.includes(label);
  }

  /** A node with neither queue nor label has the label of its flow, and the default queue. */
  #routesOf({ name, version, label, nodes }: FlowBody): readonly string[] {
    const own = [...nodes.values()]
      .filter((node) => node.slotOptions !== undefined || node.label !== undefined)
      .filter((node) => this.#matches({ slotOptions: node.slotOptions, label: node.label ?? label }))
      .map((node) => nodeRoute(name, version, node.slotOptions?.queue.name, node.label));
    // keys.K1. Where nodes with a key wait before they are in their queue.
    const unkeyed = [...nodes.values()]
      .filter((node) => node.label !== undefined && hasKey(node))
      .filter((node) => this.#matches({ slotOptions: undefined, label: node.label }))
      .map((node) => nodeRoute(name, version, undefined, node.label));
    const rest = this.#matches({ slotOptions: undefined, label }) ? [nodeRoute(name, version)] : [];
    return [...rest, ...new Set([...own, ...unkeyed])];
  }
}
