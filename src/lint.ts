// Lint: `reprise/lint`, an ESLint-compatible plugin for ESLint 9 and for oxlint's `jsPlugins`.
//
// It checks one file at a time and follows the functions of that file that a workflow calls; the determinism guard checks calls
// into other files at run time. No imports, so that a linter loads it fast.

/** The part of an ESTree node that the rule reads. */
interface Node {
  readonly type: string;
  readonly parent?: Node | null;
  readonly name?: string;
  readonly range?: readonly [start: number, end: number];
  readonly computed?: boolean;
  readonly async?: boolean;
  /** Of a declaration. */
  readonly id?: Node | null;
  readonly init?: Node | null;
  /** Of a property of an object. */
  readonly key?: Node;
  readonly value?: Node;
  readonly callee?: Node;
  readonly object?: Node;
  readonly property?: Node;
  readonly expression?: Node;
  readonly arguments?: readonly Node[];
  readonly params?: readonly Node[];
}

interface RuleContext {
  report(problem: { node: Node; message: string }): void;
}

/** One rule, in the form that ESLint and oxlint load. */
export interface LintRule {
  readonly meta: { readonly type: "problem"; readonly docs: { readonly description: string } };
  create(context: RuleContext): Readonly<Record<string, (node: Node) => void>>;
}

/** The plugin with its rules, as `reprise/lint` exports it by default. */
export interface LintPlugin {
  readonly meta: { readonly name: string };
  readonly rules: Readonly<Record<string, LintRule>>;
}

const NOW = "ctx.now()";
const SLEEP = "ctx.sleep()";
const RUN = "ctx.run(), which records the result";

/** Calls that are not deterministic, with their replacements. */
const CALLS: Readonly<Record<string, string>> = {
  "Date.now": NOW,
  Date: NOW,
  "performance.now": NOW,
  "process.hrtime": NOW,
  "process.hrtime.bigint": NOW,
  "Math.random": "ctx.random()",
  "crypto.randomUUID": "ctx.uuid()",
  randomUUID: "ctx.uuid()",
  "crypto.getRandomValues": RUN,
  randomBytes: RUN,
  setTimeout: SLEEP,
  setInterval: SLEEP,
  setImmediate: SLEEP,
  "AbortSignal.timeout": SLEEP,
  fetch: RUN,
};

/** Calls of ctx that must be awaited. A child runs without it. */
const AWAITED: ReadonlySet<string> = new Set([
  "task",
  "run",
  "tx",
  "promise",
  "resolve",
  "reject",
  "receive",
  "sleep",
  "sleepUntil",
  "continueAsNew",
]);

const FUNCTIONS: ReadonlySet<string> = new Set([
  "FunctionExpression",
  "ArrowFunctionExpression",
  "FunctionDeclaration",
]);

/** The text of a plain chain of names, such as `Date.now`; undefined for any other expression. */
function nameOf(node: Node | undefined): string | undefined {
  if (node?.type === "Identifier") return node.name;
  if (node?.type !== "MemberExpression" || node.computed === true) return undefined;
  const object = nameOf(node.object);
  return object === undefined || node.property?.name === undefined ? undefined : `${object}.${node.property.name}`;
}

/** Functions that need not be deterministic: their results are recorded, or the engine makes their values deterministic. */
function isStepCall(name: string | undefined): boolean {
  return name === "task" || [".run", ".tx", ".deterministic"].some((method) => name?.endsWith(method) === true);
}

function parentOf(node: Node): Node | undefined {
  return node.parent ?? undefined;
}

/** The call that a node is an argument of. */
function callWith(node: Node): Node | undefined {
  const call = parentOf(node);
  return call?.type === "CallExpression" && call.arguments?.includes(node) === true ? call : undefined;
}

const SCOPES: ReadonlySet<string> = new Set(["Program", "BlockStatement", "StaticBlock", "ForStatement", ...FUNCTIONS]);

function scopeAround(node: Node): Node | undefined {
  let at = parentOf(node);
  while (at !== undefined && !SCOPES.has(at.type)) at = parentOf(at);
  return at;
}

/** The names of one file: which functions have a name, and where it is used. */
class FileNames {
  /** By scope. Undefined: the name means something other than a function of this file. */
  readonly #declared = new Map<Node, Map<string, Node | undefined>>();
  readonly #used = new Map<string, Node[]>();

  declare(scope: Node | undefined, name: string | undefined, called: Node | undefined): void {
    if (scope === undefined || name === undefined) return;
    const names = this.#declared.get(scope) ?? new Map<string, Node | undefined>();
    this.#declared.set(scope, names.set(name, called));
  }

  use(node: Node): void {
    if (node.name === undefined || isNameOnly(node)) return;
    const before = this.#used.get(node.name);
    if (before === undefined) this.#used.set(node.name, [node]);
    else before.push(node);
  }

  /** The function that a name means where it is used. */
  functionOf(node: Node | undefined): Node | undefined {
    const { name } = node ?? {};
    if (node?.type !== "Identifier" || name === undefined) return undefined;
    for (let at = parentOf(node); at !== undefined; at = parentOf(at)) {
      const names = this.#declared.get(at);
      if (names?.has(name) === true) return names.get(name);
    }
    return undefined;
  }

  /** Where a function is used by its name, outside of itself; undefined if it has no name. */
  usesOf(called: Node): readonly Node[] | undefined {
    const name = nameOfFunction(called);
    if (name === undefined) return undefined;
    const uses = this.#used.get(name) ?? [];
    return uses.filter((use) => this.functionOf(use) === called && !isInside(use, called));
  }
}

function isInside(node: Node, around: Node): boolean {
  for (let at = parentOf(node); at !== undefined; at = parentOf(at)) if (at === around) return true;
  return false;
}

/** `function step() {}` and `const step = () => {}` */
function nameOfFunction(called: Node): string | undefined {
  if (called.type === "FunctionDeclaration") return called.id?.name;
  const declarator = parentOf(called);
  return declarator?.type === "VariableDeclarator" && declarator.init === called ? declarator.id?.name : undefined;
}

/** The name of a property or of a declaration: it refers to nothing. */
function isNameOnly(node: Node): boolean {
  const parent = parentOf(node);
  if (parent?.type === "MemberExpression") return parent.property === node && parent.computed !== true;
  if (parent?.type === "Property") return parent.key === node && parent.value !== node && parent.computed !== true;
  return parent?.id === node || parent?.params?.includes(node) === true;
}

/** Which code of a file is workflow code: functions passed to `workflow()`, and what they call in the same file. */
class WorkflowCode {
  readonly #names: FileNames;
  readonly #known = new Map<Node, boolean>();
  readonly #asked = new Set<Node>();

  constructor(names: FileNames) {
    this.#names = names;
  }

  /** `asked`: the functions that are being decided, which call each other. */
  includes(node: Node, asked: Set<Node> = new Set()): boolean {
    for (let at: Node | undefined = node; at !== undefined; at = parentOf(at)) {
      if (!FUNCTIONS.has(at.type)) continue;
      const call = callWith(at);
      if (nameOf(call?.callee) === "workflow") return true;
      if (call !== undefined && isStepCall(nameOf(call.callee))) return false;
      const property = parentOf(at);
      if (property?.type === "Property" && property.key?.name === "undo") return false;
      const uses = this.#names.usesOf(at);
      // A function that nothing uses belongs to the code around it.
      if (uses !== undefined && uses.length > 0) return this.#isUsed(at, uses, asked);
    }
    return false;
  }

  #isUsed(called: Node, uses: readonly Node[], asked: Set<Node>): boolean {
    const known = this.#known.get(called);
    if (known !== undefined || asked.has(called)) return known ?? false;
    const isFirst = asked.size === 0;
    asked.add(called);
    const isUsed = uses.some((use) => {
      const name = nameOf(callWith(use)?.callee);
      return name === "workflow" || (!isStepCall(name) && this.includes(use, asked));
    });
    // "No" of a function that another one asked for may only mean that the other one is not decided yet.
    if (isUsed || isFirst) this.#known.set(called, isUsed);
    return isUsed;
  }

  /** Whether a name is the context of a workflow: the first parameter of its function, passed on by any call. */
  isContext(node: Node | undefined): boolean {
    if (node?.type !== "Identifier") return false;
    for (let at = parentOf(node); at !== undefined; at = parentOf(at)) {
      const index = at.params?.findIndex(({ name }) => name === node.name) ?? -1;
      if (index >= 0) return this.#receivesContext(at, index);
    }
    return false;
  }

  #receivesContext(called: Node, index: number): boolean {
    if (nameOf(callWith(called)?.callee) === "workflow") return index === 0;
    if (this.#asked.has(called)) return false;
    this.#asked.add(called);
    const receives = (this.#names.usesOf(called) ?? []).some((use) => {
      if (nameOf(callWith(use)?.callee) === "workflow") return index === 0;
      const call = parentOf(use);
      return call?.type === "CallExpression" && call.callee === use && this.isContext(call.arguments?.[index]);
    });
    this.#asked.delete(called);
    return receives;
  }
}

const noNondeterminism: LintRule = {
  meta: {
    type: "problem",
    docs: { description: "Workflow code must use ctx for every value that could differ on replay." },
  },
  create(context) {
    const names = new FileNames();
    // Reported at the end of the file: a function may be used before its definition.
    const found: { readonly node: Node; readonly message: string }[] = [];
    const statements: Node[] = [];
    const flag = (node: Node, message: string): void => void found.push({ node, message });
    const differs = (what: string, instead: string): string =>
      `${what} is not deterministic in workflow code: it returns a different value on replay. Use ${instead}.`;
    const declareParams = (node: Node): void => {
      for (const { name } of node.params ?? []) names.declare(node, name, undefined);
    };
    return {
      Identifier: (node) => names.use(node),
      FunctionDeclaration(node) {
        names.declare(scopeAround(node), node.id?.name, node);
        declareParams(node);
      },
      FunctionExpression: declareParams,
      ArrowFunctionExpression: declareParams,
      VariableDeclarator(node) {
        const { init } = node;
        const called = init !== undefined && init !== null && FUNCTIONS.has(init.type) ? init : undefined;
        names.declare(scopeAround(node), node.id?.name, called);
      },
      CallExpression(node) {
        const name = nameOf(node.callee);
        const instead = name === undefined || !Object.hasOwn(CALLS, name) ? undefined : CALLS[name];
        if (instead !== undefined) flag(node, differs(`${name}()`, instead));
      },
      NewExpression(node) {
        if (nameOf(node.callee) === "Date" && node.arguments?.length === 0) flag(node, differs("new Date()", NOW));
      },
      MemberExpression(node) {
        if (nameOf(node) === "process.env") flag(node, differs("process.env", `the workflow's input, or ${RUN}`));
      },
      ImportExpression(node) {
        flag(node, "A workflow that awaits import() cannot resume from its journal. Import at the top of the file.");
      },
      ExpressionStatement(node) {
        if (node.expression?.type === "CallExpression") statements.push(node);
      },
      "Program:exit"() {
        const code = new WorkflowCode(names);
        for (const statement of statements) {
          const what = unawaitedCall(statement.expression, names, code);
          if (what === undefined) continue;
          flag(statement, `${what}() is not awaited. Write await or return before it, or void if that is intended.`);
        }
        const inOrder = found.toSorted((a, b) => (a.node.range?.[0] ?? 0) - (b.node.range?.[0] ?? 0));
        for (const problem of inOrder) if (code.includes(problem.node)) context.report(problem);
      },
    };
  },
};

/** `ctx.sleep`, or an async function of this file that gets the context; undefined for any other call. */
function unawaitedCall(call: Node | undefined, names: FileNames, code: WorkflowCode): string | undefined {
  const { callee } = call ?? {};
  if (callee?.type === "MemberExpression") {
    const { object, property } = callee;
    const isAwaited = property?.name !== undefined && AWAITED.has(property.name);
    return isAwaited && code.isContext(object) ? nameOf(callee) : undefined;
  }
  const isAsync = names.functionOf(callee)?.async === true;
  return isAsync && call?.arguments?.some((one) => code.isContext(one)) === true ? callee?.name : undefined;
}

/**
 * The lint plugin: `reprise/no-nondeterminism` finds calls in workflow code that return a different value on replay.
 *
 * @example
 * ```ts
 * import reprise from "reprise/lint";
 * export default [{ plugins: { reprise }, rules: { "reprise/no-nondeterminism": "error" } }];
 * ```
 */
const plugin: LintPlugin = {
  meta: { name: "reprise" },
  rules: { "no-nondeterminism": noNondeterminism },
};

export default plugin;
