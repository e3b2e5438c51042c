// Registry: what this process can run, by name. Checked once, when the engine is made.

import { RepriseError } from "../base/index.ts";
import {
  DEFAULT_QUEUE,
  isTask,
  limitsText,
  lineOf,
  parseNow,
  queueLimits,
  taskBody,
  type AnyTask,
  type Definition,
  type LineOptions,
  type Queue,
  type QueueLimits,
  type TaskBody,
} from "../kernel/index.ts";
import { isWorkflow, workflowBody, type Accepted, type WorkflowBody } from "../workflow/index.ts";

export class Registry {
  readonly #workflows = new Map<string, WorkflowBody>();
  readonly #tasks = new Map<string, TaskBody>();
  readonly #queues = new Map<string, QueueLimits>();

  constructor(definitions: readonly (Definition | AnyTask)[]) {
    for (const definition of definitions) {
      if (isTask(definition)) this.#add(this.#tasks, "task", definition.name, taskBody(definition));
      else if (isWorkflow(definition))
        this.#add(this.#workflows, "definition", definition.name, workflowBody(definition));
      else
        throw new RepriseError(
          "UNKNOWN_DEFINITION",
          `Expected what workflow() or task() made in \`definitions\`, got ${describe(definition)}.`,
        );
    }
  }

  #add<T extends { readonly line: LineOptions | undefined }>(
    map: Map<string, T>,
    what: string,
    name: string,
    body: T,
  ): void {
    const present = map.get(name);
    if (present !== undefined && present !== body)
      throw new RepriseError("DUPLICATE_DEFINITION", `Two different ${what}s are called ${name}. Rename one of them.`);
    map.set(name, body);
    if (body.line !== undefined) this.addQueue(body.line.queue);
  }

  /** One name, one set of limits: with two, whoever started last would win. */
  addQueue(queue: Queue): void {
    const limits = queueLimits(queue, "queues");
    if (queue.name === DEFAULT_QUEUE) return;
    const present = this.#queues.get(queue.name);
    if (present !== undefined && limitsText(present) !== limitsText(limits))
      throw new RepriseError(
        "DUPLICATE_DEFINITION",
        `Two queues are called ${queue.name}, with different limits: ${limitsText(present)} and ${limitsText(limits)}. Make one with queue() and share it.`,
      );
    this.#queues.set(queue.name, limits);
  }

  get queues(): ReadonlyMap<string, QueueLimits> {
    return this.#queues;
  }

  get definitionNames(): readonly string[] {
    return [...this.#workflows.keys()];
  }
  get taskNames(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  findWorkflow(name: string): WorkflowBody | undefined {
    return this.#workflows.get(name);
  }
  getWorkflow(name: string): WorkflowBody {
    const body = this.#workflows.get(name);
    if (body !== undefined) return body;
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `No definition is called ${name}; registered are: ${this.definitionNames.join(", ") || "none"}. Add it to \`definitions\` of createEngine.`,
    );
  }

  findTask(name: string): TaskBody | undefined {
    return this.#tasks.get(name);
  }

  /** The input a task will be given, or undefined when the task is not registered. */
  acceptTask(task: AnyTask, input: unknown): Accepted | undefined {
    const body = this.#tasks.get(task.name);
    return body && accept(body, input, `task ${task.name}`);
  }

  acceptChild(definition: Definition, input: unknown): Accepted | undefined {
    const body = this.#workflows.get(definition.name);
    return body && accept(body, input, `workflow ${definition.name}`);
  }
}

function accept({ schema, line }: TaskBody | WorkflowBody, given: unknown, what: string): Accepted {
  const input = parseNow(schema, given, what);
  return { input, parsed: schema !== undefined, line: lineOf(line, input, what) };
}

function describe(value: unknown): string {
  if (typeof value === "function") return `the function ${value.name || "without a name"}`;
  if (typeof value !== "object" || value === null) return String(value);
  return "name" in value ? `an object named ${String(value.name)}` : "another object";
}
