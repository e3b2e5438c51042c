// Registry: what this process can run, by name. Checked once, when the engine is made.

import { RepriseError } from "../base/index.ts";
import { isTask, parseNow, taskBody, type AnyTask, type Definition, type TaskBody } from "../kernel/index.ts";
import { isWorkflow, workflowBody, type WorkflowBody } from "../workflow/index.ts";

export class Registry {
  readonly #workflows = new Map<string, WorkflowBody>();
  readonly #tasks = new Map<string, TaskBody>();

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

  #add<T>(map: Map<string, T>, what: string, name: string, body: T): void {
    const present = map.get(name);
    if (present !== undefined && present !== body)
      throw new RepriseError("DUPLICATE_DEFINITION", `Two different ${what}s are called ${name}. Rename one of them.`);
    map.set(name, body);
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
  acceptTask(task: AnyTask, input: unknown): { input: unknown; parsed: boolean } | undefined {
    const body = this.#tasks.get(task.name);
    if (body === undefined) return undefined;
    return { input: parseNow(body.schema, input, `task ${task.name}`), parsed: body.schema !== undefined };
  }

  acceptChild(definition: Definition, input: unknown): { input: unknown; parsed: boolean } | undefined {
    const body = this.#workflows.get(definition.name);
    if (body === undefined) return undefined;
    return { input: parseNow(body.schema, input, `workflow ${definition.name}`), parsed: body.schema !== undefined };
  }
}

function describe(value: unknown): string {
  if (typeof value === "function") return `the function ${value.name || "without a name"}`;
  if (typeof value !== "object" || value === null) return String(value);
  return "name" in value ? `an object named ${String(value.name)}` : "another object";
}
