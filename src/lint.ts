// Lint: `reprise/lint`, an ESLint-compatible plugin for ESLint 9 and for oxlint's `jsPlugins`.
//
// It checks one file at a time; the determinism guard checks calls into other files at run time. Plain objects and no imports,
// so that a linter loads it fast.

/** The part of an ESTree node that the rule reads. */
interface Node {
  readonly type: string;
  readonly parent?: Node | null;
  readonly name?: string;
  readonly computed?: boolean;
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

/** The workflow function that contains a node; undefined outside workflows, and inside the function of a step or a task. */
function workflowAround(node: Node): Node | undefined {
  for (let at: Node | undefined = node; at !== undefined; at = at.parent ?? undefined) {
    const call: Node | undefined = at.parent ?? undefined;
    if (!FUNCTIONS.has(at.type) || call?.type !== "CallExpression" || !call.arguments?.includes(at)) continue;
    const name = nameOf(call.callee);
    if (name === "workflow") return at;
    if (name === "task" || name?.endsWith(".run") === true || name?.endsWith(".tx") === true) return undefined;
  }
  return undefined;
}

const noNondeterminism: LintRule = {
  meta: {
    type: "problem",
    docs: { description: "Workflow code must use ctx for every value that could differ on replay." },
  },
  create(context) {
    const flag = (node: Node, message: string): void => {
      if (workflowAround(node) !== undefined) context.report({ node, message });
    };
    const differs = (what: string, instead: string): string =>
      `${what} is not deterministic in workflow code: it returns a different value on replay. Use ${instead}.`;
    return {
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
        const call = node.expression;
        if (call?.type !== "CallExpression" || call.callee?.type !== "MemberExpression") return;
        const { object, property } = call.callee;
        if (object?.type !== "Identifier" || property?.name === undefined || !AWAITED.has(property.name)) return;
        const [ctx] = workflowAround(node)?.params ?? [];
        if (ctx?.name !== object.name) return;
        const what = `${object.name}.${property.name}()`;
        flag(node, `${what} is not awaited. Write await or return before it, or void if that is intended.`);
      },
    };
  },
};

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
