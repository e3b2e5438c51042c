// Served: what this worker claims. Everything it has, or only what belongs to the queues it names.

import { DEFAULT_QUEUE, type DefinitionVersion, type LineOptions } from "../kernel/index.ts";
import type { Registry } from "./registry.ts";

export class Served {
  readonly definitions: readonly DefinitionVersion[];
  readonly tasks: readonly string[];
  readonly #definitions: ReadonlySet<string>;
  readonly #tasks: ReadonlySet<string>;

  constructor(registry: Registry, queues: readonly string[] | undefined) {
    const wanted = queues && new Set(queues);
    const serves = (line: LineOptions | undefined): boolean =>
      wanted === undefined || wanted.has(line?.queue.name ?? DEFAULT_QUEUE);
    this.definitions = registry.definitions.filter(({ name, version }) =>
      serves(registry.findWorkflow(name, version)?.line),
    );
    this.tasks = registry.taskNames.filter((name) => serves(registry.findTask(name)?.line));
    this.#definitions = new Set(this.definitions.map(({ name }) => name));
    this.#tasks = new Set(this.tasks);
  }

  hasDefinition(name: string): boolean {
    return this.#definitions.has(name);
  }
  hasTask(name: string): boolean {
    return this.#tasks.has(name);
  }
}
