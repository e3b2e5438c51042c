// Flow definition: the builder of flows, and the body that the engine runs.
//
// flow.D1. A node can need only names defined before it, so a cycle cannot be written. The builder repeats at run time what
//   the types check.
// flow.D2. A branch adds its nodes to the flow, each guarded by its `when`. The two sides cannot use the same names.
// flow.D3. A builder without `.output` is not a definition.
// flow.D4. Definitions and builders carry `Symbol.for` brands, so that two copies of the package accept each other's.

import { inspect } from "node:util";
import { checkName, checkOptionNames, RepriseError } from "../base/index.ts";
import {
  FLOW_OUTPUT,
  checkBudget,
  checkCost,
  checkDeadline,
  checkNodeRoute,
  checkPolicy,
  checkPure,
  checkRetention,
  checkVersion,
  isTask,
  labelOption,
  checkQueueSlot,
  nodeRoute,
  taskBody,
  type BudgetCap,
  type Definition,
  type QueueSlotOptions,
  type Policy,
  type RetentionMs,
  type Schema,
  type TaskCost,
} from "../kernel/index.ts";
import { SPREAD_SUFFIX, type FlowNode, type BranchGuard, type NodeWork } from "./node.ts";
import type { Flow, FlowBuilder, FlowOptions, FlowPart } from "./parts.ts";
import { regionsOf, type Regions } from "./regions.ts";

/** A complete flow as the engine runs it. */
export interface FlowBody {
  readonly name: string;
  readonly version: number;
  readonly schema: Schema<never, unknown>;
  readonly deadlineMs: number | undefined;
  readonly retention: RetentionMs | undefined;
  readonly budget: BudgetCap | undefined;
  readonly label: string | undefined;
  readonly nodes: ReadonlyMap<string, FlowNode>;
  readonly regions: Regions;
}

// flow.D4
const BODY = Symbol.for("reprise.flow");
const DRAFT = Symbol.for("reprise.flow.draft");

export function flowBody(definition: unknown): FlowBody {
  const body = (definition as { [BODY]?: FlowBody } | null | undefined)?.[BODY];
  if (body !== undefined) return body;
  const isBuilder = isFlow(definition);
  throw new RepriseError(
    "UNKNOWN_DEFINITION",
    isBuilder
      ? "Expected a flow, got a builder without an output. Complete it with .output(needs, derive)."
      : "Expected a flow made by flow(), got a different object.",
  );
}

/** True for a builder without an output as well: `flowBody` reports what it lacks. */
export function isFlow(value: unknown): boolean {
  return typeof value === "object" && value !== null && (BODY in value || DRAFT in value);
}

interface FlowDraft {
  readonly flow: string;
  readonly options: FlowOptions<never, unknown>;
  readonly nodes: readonly FlowNode[];
  /** Names that later nodes can need. */
  readonly names: ReadonlySet<string>;
  /** The whens of this scope that have no `otherwise` yet. */
  readonly whens: ReadonlySet<string>;
  readonly guard: BranchGuard | undefined;
}

/**
 * Defines a flow: a pipeline of named values. Each node runs on any worker as soon as the values it needs exist.
 *
 * @example
 * ```ts
 * import { flow, typed } from "reprise";
 * const total = flow("total", { input: typed<{ prices: readonly number[] }>() })
 *   .spread("taxed", ["input"], ({ input }) => input.prices, async (_ctx, price) => price * 1.2)
 *   .inline("sum", ["taxed"], ({ taxed }) => taxed.reduce((a, b) => a + b, 0))
 *   .output(["sum"], ({ sum }) => sum);
 * ```
 */
export function flow<const Name extends string, Input, Parsed = Input>(
  name: Name,
  options: FlowOptions<Input, Parsed>,
): FlowBuilder<Name, Input, FlowPart<"input", Parsed>> {
  checkName(name, "flow name");
  checkOptionNames(options, ["budget", "deadline", "input", "label", "retention", "version"], `Flow ${name}`);
  if (typeof options.input?.["~standard"]?.validate !== "function")
    throw new RepriseError(
      "BAD_OPTIONS",
      `Flow ${name}: expected a schema as input, got ${inspect(options.input, { depth: 0 })}. Pass typed<T>() if you have none.`,
    );
  checkVersion(options.version, `Flow ${name}`);
  labelOption(options, `Flow ${name}`);
  if (options.retention !== undefined) checkRetention(options.retention, `Flow ${name}`);
  if (options.budget !== undefined) checkBudget(options.budget, `Flow ${name}`);
  const input: FlowNode = {
    id: "input",
    name: "input",
    work: { kind: "input" },
    needs: [],
    guard: undefined,
    policy: {},
    slotOptions: undefined,
    label: undefined,
  };
  const draft: FlowDraft = {
    flow: name,
    options: options as unknown as FlowDraft["options"],
    nodes: [input],
    names: new Set(["input"]),
    whens: new Set(),
    guard: undefined,
  };
  return builder(draft) as unknown as FlowBuilder<Name, Input, FlowPart<"input", Parsed>>;
}

function builder(draft: FlowDraft): object {
  return Object.freeze({
    [DRAFT]: draft,
    action: (name: string, needs: unknown, ...rest: readonly unknown[]) =>
      builder(withAction(draft, name, needs, rest)),
    inline: (name: string, needs: unknown, ...rest: readonly unknown[]) =>
      builder(withInline(draft, name, needs, rest)),
    call: (name: string, needs: unknown, ...rest: readonly unknown[]) => builder(withCall(draft, name, needs, rest)),
    spread: (name: string, needs: unknown, ...rest: readonly unknown[]) =>
      builder(withSpread(draft, name, needs, rest)),
    parallel: (name: string, needs: unknown, ...rest: readonly unknown[]) =>
      builder(withParallel(draft, name, needs, rest)),
    when: (name: string, needs: unknown, test: unknown, then: unknown) =>
      builder(withWhen(draft, name, needs, test, then)),
    otherwise: (name: string, then: unknown) => builder(withOtherwise(draft, name, then)),
    output: (needs: unknown, derive: unknown) => definitionOf(draft, needs, derive),
  });
}

// ── nodes ──

function withAction(draft: FlowDraft, name: string, given: unknown, rest: readonly unknown[]): FlowDraft {
  const what = whatOf(draft, name);
  const needs = checkNeeds(draft, given, what);
  const [options, run] = splitOptions(rest, 1);
  const { policy, slotOptions, label } = checkNodeOptions(
    options,
    ["catch", "catchTimeouts", "cost", "key", "label", "pure", "queue", "retry", "timeout"],
    what,
  );
  const recover = options["catch"];
  if (recover !== undefined) checkFunction(recover, `${what}: catch`);
  const recoversTimeouts = options["catchTimeouts"] ?? false;
  checkBoolean(recoversTimeouts, `${what}: catchTimeouts`);
  if (recoversTimeouts && recover === undefined)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: \`catchTimeouts\` has no effect without \`catch\`. Add \`catch: (error) => …\`.`,
    );
  const work: NodeWork = {
    kind: "action",
    run: checkFunction(run, what),
    recover: recover as Function | undefined,
    recoversTimeouts,
    isPart: false,
    pure: checkPure(options["pure"], what),
    cost: checkCost(options["cost"] as TaskCost | undefined, what),
  };
  return withNode(draft, name, { work, needs, policy, slotOptions, label });
}

function withInline(draft: FlowDraft, name: string, given: unknown, rest: readonly unknown[]): FlowDraft {
  const what = whatOf(draft, name);
  const needs = checkNeeds(draft, given, what);
  const [options, derive] = splitOptions(rest, 1);
  checkNodeOptions(options, [], what);
  const work: NodeWork = { kind: "inline", derive: checkFunction(derive, what) as never, isParallel: false };
  return withNode(draft, name, { work, needs });
}

function withCall(draft: FlowDraft, name: string, given: unknown, rest: readonly unknown[]): FlowDraft {
  const what = whatOf(draft, name);
  const needs = checkNeeds(draft, given, what);
  const [options, called, input] = splitOptions(rest, 2);
  if (!isTask(called) && !isDefinition(called))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected a task or a definition, got ${inspect(called, { depth: 0 })}.`,
    );
  const { policy } = checkNodeOptions(options, ["retry", "timeout"], what);
  const isChild = !isTask(called);
  if (isChild && (policy.retry !== undefined || policy.timeout !== undefined))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: retry and timeout apply to tasks only. Give the child ${(called as Definition).name} a deadline, or retry inside it.`,
    );
  const ofTask = isTask(called) ? taskBody(called) : undefined;
  const own = ofTask === undefined ? {} : { ...ofTask.policy, ...policy };
  const work: NodeWork = {
    kind: "call",
    definition: called as Definition,
    input: checkFunction(input, what) as never,
    cost: ofTask?.cost,
  };
  return withNode(draft, name, {
    work,
    needs,
    policy: own,
    slotOptions: ofTask?.slotOptions,
    label: ofTask?.label,
  });
}

function withSpread(draft: FlowDraft, name: string, given: unknown, rest: readonly unknown[]): FlowDraft {
  const what = whatOf(draft, name);
  const needs = checkNeeds(draft, given, what);
  const [options, items, run] = splitOptions(rest, 2);
  const allowed = ["concurrency", "cost", "key", "label", "queue", "retry", "settle", "timeout"];
  const { policy, slotOptions, label } = checkNodeOptions(options, allowed, what);
  const { concurrency, settle = false } = options as { concurrency?: unknown; settle?: unknown };
  if (concurrency !== undefined && !(Number.isSafeInteger(concurrency) && (concurrency as number) >= 1))
    throw new RepriseError("BAD_OPTIONS", `${what}: expected a concurrency of 1 or more, got ${inspect(concurrency)}.`);
  checkBoolean(settle, `${what}: settle`);
  checkFunction(items, `${what}: items`);
  if (typeof run !== "function" && !isTask(run) && !isDefinition(run))
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected a function, a task or a definition to run per item, got ${inspect(run, { depth: 0 })}.`,
    );
  const ofTask = isTask(run) ? taskBody(run) : undefined;
  const work: NodeWork = {
    kind: "spread",
    items: items as never,
    run: run as Function,
    window: concurrency as number | undefined,
    settle,
    cost: checkCost(options["cost"] as TaskCost | undefined, what) ?? ofTask?.cost,
  };
  const spreading = addNode(draft, {
    id: `${name}${SPREAD_SUFFIX}`,
    name,
    work,
    needs,
    policy: { ...ofTask?.policy, ...policy },
    slotOptions: slotOptions ?? ofTask?.slotOptions,
    label: label ?? ofTask?.label,
  });
  return withNode(spreading, name, { work: { kind: "barrier", spread: name, settle }, needs: [] });
}

function withParallel(draft: FlowDraft, name: string, given: unknown, rest: readonly unknown[]): FlowDraft {
  const what = whatOf(draft, name);
  const needs = checkNeeds(draft, given, what);
  const [options, runs] = splitOptions(rest, 1);
  const { policy } = checkNodeOptions(options, ["retry", "timeout"], what);
  if (typeof runs !== "object" || runs === null || Object.keys(runs).length === 0)
    throw new RepriseError(
      "BAD_OPTIONS",
      `${what}: expected an object of functions by name, such as { left: run, right: run }.`,
    );
  const keys = Object.keys(runs);
  let made = draft;
  for (const key of keys) {
    checkNodeName(key, `${what}: ${key}`);
    const run = checkFunction((runs as Record<string, unknown>)[key], `${what}: ${key}`);
    const work: NodeWork = { kind: "action", run, recover: undefined, recoversTimeouts: false, isPart: true };
    made = addNode(made, { id: partId(name, key), name: partId(name, key), work, needs, policy });
  }
  const derive = (all: Readonly<Record<string, unknown>>): unknown =>
    Object.fromEntries(keys.map((key) => [key, all[partId(name, key)]]));
  const work: NodeWork = { kind: "inline", derive, isParallel: true };
  return withNode(made, name, { work, needs: keys.map((key) => partId(name, key)) });
}

function partId(parallel: string, key: string): string {
  return `${parallel}.${key}`;
}

// ── branches (flow.D2) ──

function withWhen(draft: FlowDraft, name: string, given: unknown, test: unknown, then: unknown): FlowDraft {
  const what = `Flow ${draft.flow}: when ${name}`;
  checkNodeName(name, what);
  const id = whenId(name);
  if (draft.nodes.some((node) => node.id === id))
    throw new RepriseError("BAD_FLOW", `${what} already exists. Choose another name.`);
  const needs = checkNeeds(draft, given, what);
  const work: NodeWork = { kind: "when", test: checkFunction(test, what) as never };
  const tested = addNode(draft, { id, name, work, needs });
  const made = branch(tested, { when: id, name, side: true }, then, what);
  return { ...made, whens: new Set([...draft.whens, name]) };
}

function withOtherwise(draft: FlowDraft, name: string, then: unknown): FlowDraft {
  const what = `Flow ${draft.flow}: otherwise ${name}`;
  if (!draft.whens.has(name)) {
    const open = [...draft.whens].join(", ") || "none";
    throw new RepriseError(
      "BAD_FLOW",
      `${what}: no when with this name is open in this scope. Open: ${open}. Call .when("${name}", …) first.`,
    );
  }
  const made = branch(draft, { when: whenId(name), name, side: false }, then, what);
  return { ...made, whens: new Set([...draft.whens].filter((open) => open !== name)) };
}

function branch(draft: FlowDraft, guard: BranchGuard, then: unknown, what: string): FlowDraft {
  checkFunction(then, what);
  const made = (then as (branch: object) => unknown)(builder({ ...draft, guard, whens: new Set() }));
  const inner = (made as { [DRAFT]?: FlowDraft } | null | undefined)?.[DRAFT];
  if (inner === undefined)
    throw new RepriseError(
      "BAD_FLOW",
      `${what}: expected its function to return the branch with its nodes, got ${inspect(made, { depth: 0 })}. Write (branch) => branch.action(…).`,
    );
  return { ...inner, guard: draft.guard };
}

function whenId(name: string): string {
  return `${name}?`;
}

// ── the definition ──

function definitionOf(draft: FlowDraft, needs: unknown, derive: unknown): Flow<string, any, any> {
  const what = `Flow ${draft.flow}: output`;
  if (draft.guard !== undefined)
    throw new RepriseError(
      "BAD_FLOW",
      `${what} is inside a branch. A flow has one output: call .output() after all branches.`,
    );
  const work: NodeWork = { kind: "output", derive: checkFunction(derive, what) as never };
  const { nodes } = addNode(draft, { id: OUTPUT, name: "output", work, needs: checkNeeds(draft, needs, what) });
  const { version = 1, deadline, label, input, retention, budget } = draft.options;
  for (const node of nodes)
    checkNodeRoute(nodeRoute(draft.flow, version, node.slotOptions?.queue.name, node.label), whatOf(draft, node.id));
  const body: FlowBody = {
    name: draft.flow,
    version,
    schema: input,
    deadlineMs: deadline === undefined ? undefined : checkDeadline(deadline, `Flow ${draft.flow}`),
    retention: retention === undefined ? undefined : checkRetention(retention, `Flow ${draft.flow}`),
    budget: budget === undefined ? undefined : checkBudget(budget, `Flow ${draft.flow}`),
    label,
    nodes: new Map(nodes.map((node) => [node.id, node])),
    regions: regionsOf(nodes),
  };
  return Object.freeze({ kind: "flow", name: draft.flow, [BODY]: body });
}

/** Not a possible name of a node, because names have no brackets. */
export const OUTPUT = FLOW_OUTPUT;

type NewNode = Pick<FlowNode, "work" | "needs"> & Partial<Pick<FlowNode, "policy" | "slotOptions" | "label">>;

function withNode(draft: FlowDraft, name: string, node: NewNode): FlowDraft {
  checkNodeName(name, whatOf(draft, name));
  if (draft.names.has(name) || draft.nodes.some(({ id }) => id === name))
    throw new RepriseError("BAD_FLOW", `${whatOf(draft, name)} already exists. Choose another name.`);
  return { ...addNode(draft, { id: name, name, ...node }), names: new Set([...draft.names, name]) };
}

function addNode(draft: FlowDraft, node: NewNode & { readonly id: string; readonly name: string }): FlowDraft {
  const { id, name, work, needs, policy = {}, slotOptions, label } = node;
  return {
    ...draft,
    nodes: [...draft.nodes, { id, name, work, needs, guard: draft.guard, policy, slotOptions, label }],
  };
}

function whatOf(draft: FlowDraft, name: string): string {
  return `Flow ${draft.flow}: node ${name}`;
}

/** The arguments after `needs`: options may come before the `count` others. */
function splitOptions(
  rest: readonly unknown[],
  count: number,
): readonly [options: Readonly<Record<string, unknown>>, ...others: readonly unknown[]] {
  if (rest.length <= count) return [{}, ...rest];
  const [options = {}, ...others] = rest;
  return [options as Readonly<Record<string, unknown>>, ...others];
}

interface CheckedOptions {
  readonly policy: Policy;
  readonly slotOptions: QueueSlotOptions | undefined;
  readonly label: string | undefined;
}

function checkNodeOptions(
  options: Readonly<Record<string, unknown>>,
  allowed: readonly string[],
  what: string,
): CheckedOptions {
  if (isObjectWithNeeds(options)) throw new RepriseError("BAD_OPTIONS", `${what}: ${NEEDS_COME_FIRST}`);
  checkOptionNames(options, allowed, what);
  const { retry, timeout } = options as Policy;
  const policy: Policy = { ...(retry && { retry }), ...(timeout !== undefined && { timeout }) };
  checkPolicy(policy, what);
  return { policy, slotOptions: checkQueueSlot(options, what), label: labelOption(options, what) };
}

const NEEDS_COME_FIRST =
  "needs is not an option. Pass the list of names as the second argument, and the options after it: (name, [needs], { retry }, …).";

function isObjectWithNeeds(value: unknown): boolean {
  return typeof value === "object" && value !== null && "needs" in value;
}

function checkNeeds(draft: FlowDraft, needs: unknown, what: string): readonly string[] {
  if (isObjectWithNeeds(needs)) throw new RepriseError("BAD_FLOW", `${what}: ${NEEDS_COME_FIRST}`);
  if (!Array.isArray(needs))
    throw new RepriseError(
      "BAD_FLOW",
      `${what}: expected the list of names it needs, such as ["input"], got ${inspect(needs, { depth: 0 })}.`,
    );
  for (const need of needs as unknown[]) {
    if (typeof need !== "string" || !draft.names.has(need))
      throw new RepriseError(
        "BAD_FLOW",
        `${what} needs ${String(need)}, which is not defined before it. Names defined before it: ${[...draft.names].join(", ")}.`,
      );
    checkSide(draft, need, what);
  }
  return [...new Set(needs as string[])];
}

/** A node on the other side of a branch is always skipped where this node runs. */
function checkSide(draft: FlowDraft, need: string, what: string): void {
  const sides = new Map(guardsOf(draft, draft.guard).map(({ when, side }) => [when, side]));
  if (sides.size === 0) return;
  const { guard } = draft.nodes.find(({ id }) => id === need) as FlowNode;
  const other = guardsOf(draft, guard).find(({ when, side }) => sides.get(when) === !side);
  if (other === undefined) return;
  throw new RepriseError(
    "BAD_FLOW",
    `${what} needs ${need}, which is on the other side of when ${other.name} and is always skipped where this node runs. Move this node after the branch.`,
  );
}

/** A guard and the guards around it, innermost first. */
function guardsOf(draft: FlowDraft, guard: BranchGuard | undefined): readonly BranchGuard[] {
  if (guard === undefined) return [];
  const test = draft.nodes.find(({ id }) => id === guard.when);
  return [guard, ...guardsOf(draft, test?.guard)];
}

function checkNodeName(name: unknown, what: string): void {
  checkName(name, what);
  // The needed values are an object by name, in which __proto__ is not a key.
  if (name === "__proto__")
    throw new RepriseError("BAD_NAME", `${what}: __proto__ cannot be a name. Choose another one.`);
  if (/[[\]?.]/.test(name as string))
    throw new RepriseError(
      "BAD_NAME",
      `${what}: expected a name without brackets, question marks and dots, which the journal uses for items and branches.`,
    );
}

function checkFunction(value: unknown, what: string): Function {
  if (typeof value === "function") return value;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected a function, got ${typeof value}.`);
}

function checkBoolean(value: unknown, what: string): asserts value is boolean {
  if (typeof value === "boolean") return;
  throw new RepriseError("BAD_OPTIONS", `${what}: expected true or false, got ${inspect(value)}.`);
}

function isDefinition(value: unknown): value is Definition {
  const kind = (value as { kind?: unknown } | null | undefined)?.kind;
  return kind === "workflow" || kind === "graph" || kind === "flow";
}
