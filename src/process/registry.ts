// Registry: the definitions and tasks of this process, by name and version. Validated once, when the engine is created.

import { RepriseError } from "../base/index.ts";
import {
  DEFAULT_QUEUE,
  isTask,
  limitsText,
  queueSlotOf,
  nodeRoute,
  type NewItem,
  parseNow,
  queueLimits,
  taskBody,
  type AnyTask,
  type DeclareQueueWrite,
  type Definition,
  type DefinitionVersion,
  type Ports,
  type QueueSlotOptions,
  type Queue,
  type QueueLimits,
  type RetentionMs,
  type TaskBody,
} from "../kernel/index.ts";
import { findRef, flowBody, flowRunBody, hasKey, isFlow, type FlowBody } from "../flow/index.ts";
import { graphRunBody, isGraph } from "../graph/index.ts";
import { isWorkflow, workflowBody, type AcceptedInput, type WorkflowBody } from "../workflow/index.ts";

export class Registry {
  /** The versions of each name, newest first. */
  readonly #workflows = new Map<string, readonly WorkflowBody[]>();
  readonly #tasks = new Map<string, TaskBody>();
  readonly #flows = new Map<string, FlowBody>();
  readonly #queues = new Map<string, QueueLimits>();
  /** What a worker may claim. */
  definitions: readonly DefinitionVersion[] = [];

  constructor(definitions: readonly (Definition | AnyTask)[]) {
    for (const definition of definitions) {
      if (isTask(definition)) this.#addTask(definition.name, taskBody(definition));
      else if (isWorkflow(definition)) this.#addWorkflow(workflowBody(definition));
      else if (isGraph(definition)) this.#addWorkflow(graphRunBody(definition));
      else if (isFlow(definition)) this.#addFlow(definition);
      else
        throw new RepriseError(
          "UNKNOWN_DEFINITION",
          `\`definitions\` holds ${describe(definition)}. Pass only values returned by workflow(), graph(), flow() or task().`,
        );
    }
  }

  #addTask(name: string, body: TaskBody): void {
    const present = this.#tasks.get(name);
    if (present !== undefined && present !== body)
      throw new RepriseError("DUPLICATE_DEFINITION", `Two different tasks are named ${name}. Rename one of them.`);
    this.#tasks.set(name, body);
    this.#addQueueOf(body.slotOptions);
  }

  #addWorkflow(body: WorkflowBody): void {
    const { name, version } = body;
    const versions = this.#workflows.get(name) ?? [];
    const present = versions.find((one) => one.version === version);
    if (present === body) return;
    if (present !== undefined)
      throw new RepriseError(
        "DUPLICATE_DEFINITION",
        `Two different definitions are named ${name} and have version ${version}. Rename one of them, or set \`version: ${version + 1}\` on the newer one.`,
      );
    this.#workflows.set(
      name,
      [...versions, body].toSorted((a, b) => b.version - a.version),
    );
    this.definitions = [...this.definitions, { name, version }];
    this.#addQueueOf(body.slotOptions);
  }

  #addFlow(definition: Definition): void {
    const body = flowBody(definition);
    this.#addWorkflow(flowRunBody(definition));
    this.#flows.set(nodeRoute(body.name, body.version), body);
    for (const { slotOptions } of body.nodes.values()) this.#addQueueOf(slotOptions);
  }

  #addQueueOf(options: QueueSlotOptions | undefined): void {
    if (options !== undefined) this.addQueue(options.queue);
  }

  /** A queue name has one set of limits: with two, the process that starts last would win. */
  addQueue(queue: Queue): void {
    const limits = queueLimits(queue, "queues");
    if (queue.name === DEFAULT_QUEUE) return;
    const present = this.#queues.get(queue.name);
    if (present !== undefined && limitsText(present) !== limitsText(limits))
      throw new RepriseError(
        "DUPLICATE_DEFINITION",
        `Two queues are named ${queue.name} and have different limits: ${limitsText(present)} and ${limitsText(limits)}. Create one with queue() and share it.`,
      );
    this.#queues.set(queue.name, limits);
  }

  get queues(): ReadonlyMap<string, QueueLimits> {
    return this.#queues;
  }

  /** The writes that make the queues of these definitions known to a store. */
  queueDeclarations(): readonly DeclareQueueWrite[] {
    return [...this.#queues].map(([name, limits]) => ({ write: "declare-queue", name, limits }));
  }

  /** The retention of each definition, as its newest version declares it; `otherwise`: of those that declare none. */
  retentions(otherwise: RetentionMs | undefined): ReadonlyMap<string, RetentionMs> {
    const policies = new Map<string, RetentionMs>();
    for (const [name, [newest]] of this.#workflows) {
      const policy = newest?.retention ?? otherwise;
      if (policy !== undefined) policies.set(name, policy);
    }
    return policies;
  }

  get definitionNames(): readonly string[] {
    return [...this.#workflows.keys()];
  }
  get taskNames(): readonly string[] {
    return [...this.#tasks.keys()];
  }

  /** Without a version, the newest. */
  findWorkflow(name: string, version?: number): WorkflowBody | undefined {
    const versions = this.#workflows.get(name);
    return version === undefined ? versions?.[0] : versions?.find((body) => body.version === version);
  }
  getWorkflow(name: string, version?: number): WorkflowBody {
    const body = this.findWorkflow(name, version);
    if (body !== undefined) return body;
    const versions = this.#workflows.get(name);
    if (versions !== undefined)
      throw new RepriseError(
        "UNKNOWN_DEFINITION",
        `Version ${version} of ${name} is not registered; registered versions: ${versions.map((one) => one.version).join(", ")}. Add it to \`definitions\` of createEngine, beside the newer one.`,
      );
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `No definition is named ${name}; registered: ${this.definitionNames.join(", ") || "none"}. Add it to \`definitions\` of createEngine.`,
    );
  }

  /** Newest first. */
  versionsOf(name: string): readonly WorkflowBody[] {
    return this.#workflows.get(name) ?? [];
  }

  findFlow(name: string, version: number): FlowBody | undefined {
    return this.#flows.get(nodeRoute(name, version));
  }
  getFlow(name: string, version: number): FlowBody {
    const body = this.findFlow(name, version);
    if (body !== undefined) return body;
    throw new RepriseError(
      "UNKNOWN_DEFINITION",
      `Version ${version} of flow ${name} is not registered. Add it to \`definitions\` of createEngine.`,
    );
  }
  get flows(): Iterable<FlowBody> {
    return this.#flows.values();
  }

  findTask(name: string): TaskBody | undefined {
    return this.#tasks.get(name);
  }
  getTask(name: string): TaskBody {
    const body = this.#tasks.get(name);
    if (body !== undefined) return body;
    throw new RepriseError("UNKNOWN_TASK", `No task is named ${name}. Add it to \`definitions\` of createEngine.`);
  }

  /** The validated input of a task; undefined when the task is not registered. */
  acceptTask(task: AnyTask, input: unknown): AcceptedInput | undefined {
    const body = this.#tasks.get(task.name);
    return body && accept(body, input, `task ${task.name}`);
  }

  /** Queue slot and priority of a task; none when the task is not registered here. */
  queueing(name: string, input: unknown): Partial<Pick<NewItem, "priority" | "slot">> {
    const body = this.#tasks.get(name);
    if (body === undefined) return {};
    const slot = queueSlotOf(body.slotOptions, input, `task ${name}`);
    return { priority: body.priority, ...(slot && { slot }) };
  }

  /** Route and queue slot of a flow node; the default route when the flow is not registered here. */
  nodeQueueing(definition: string, version: number, item: string): Partial<Pick<NewItem, "name" | "slot">> {
    const body = this.#flows.get(nodeRoute(definition, version));
    const node = body && findRef(body, item)?.head.region.head;
    // keys.K1. The worker that claims a node with a key moves it into its queue.
    const queue = node === undefined || hasKey(node) ? undefined : node.slotOptions?.queue.name;
    return {
      name: nodeRoute(definition, version, queue, node?.label),
      ...(queue !== undefined && { slot: { queue } }),
    };
  }

  acceptChild(definition: Definition, input: unknown): AcceptedInput | undefined {
    const body = this.findWorkflow(definition.name, versionOf(definition));
    return body && accept(body, input, `${body.kind} ${definition.name}`);
  }

  portsOf(definition: Definition): Ports | undefined {
    return this.findWorkflow(definition.name, versionOf(definition))?.ports;
  }

  acceptNext(name: string, version: number, input: unknown): { input: unknown } | undefined {
    const body = this.findWorkflow(name, version);
    return body && { input: parseNow(body.schema, input, `${body.kind} ${name}`) };
  }
}

/** The version of a definition; undefined for a name, which means the newest. */
export function versionOf(definition: unknown): number | undefined {
  if (isGraph(definition)) return graphRunBody(definition as Definition).version;
  if (isFlow(definition)) return flowBody(definition).version;
  return isWorkflow(definition) ? workflowBody(definition).version : undefined;
}

function accept({ schema, slotOptions }: TaskBody | WorkflowBody, given: unknown, what: string): AcceptedInput {
  const input = parseNow(schema, given, what);
  return { input, parsed: schema !== undefined, slot: queueSlotOf(slotOptions, input, what) };
}

function describe(value: unknown): string {
  if (typeof value === "function") return `the function ${value.name || "without a name"}`;
  if (typeof value !== "object" || value === null) return String(value);
  return "name" in value ? `an object named ${String(value.name)}` : "another object";
}
