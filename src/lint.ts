// reprise/lint: an ESLint-compatible plugin, for ESLint 9 and for oxlint's `jsPlugins`.
//
// It sees one file at a time: what a function in another file does is the guard's business. Plain objects and no imports,
// so that loading it costs a linter nothing.

/** What is read of a syntax tree; ESTree has much more. */
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

export interface LintRule {
  readonly meta: { readonly type: "problem"; readonly docs: { readonly description: string } };
  create(context: RuleContext): Readonly<Record<string, (node: Node) => void>>;
}

export interface LintPlugin {
  readonly meta: { readonly name: string };
  readonly rules: Readonly<Record<string, LintRule>>;
}

const NOW = "ctx.now()";
const SLEEP = "ctx.sleep()";
const RUN = "ctx.run(), which keeps the answer";

/** How it is written, and what to write instead. */
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

/** Calls of ctx that do nothing useful unless somebody waits for them; a child goes on by itself. */
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

/** `Date.now` of `Date.now`; undefined for anything that is not a plain chain of names. */
function nameOf(node: Node | undefined): string | undefined {
  if (node?.type === "Identifier") return node.name;
  if (node?.type !== "MemberExpression" || node.computed === true) return undefined;
  const object = nameOf(node.object);
  return object === undefined || node.property?.name === undefined ? undefined : `${object}.${node.property.name}`;
}

/** The workflow function a node belongs to; undefined outside workflows, and inside what a step or a task calls. */
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
    docs: { description: "Workflow code must ask ctx for everything that could come out differently on a replay." },
  },
  create(context) {
    const flag = (node: Node, message: string): void => {
      if (workflowAround(node) !== undefined) context.report({ node, message });
    };
    const differs = (what: string, instead: string): string =>
      `${what} comes out differently when the workflow is replayed. Use ${instead}.`;
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
        flag(node, "A workflow that waits for import() cannot be woken by its journal. Import at the top of the file.");
      },
      ExpressionStatement(node) {
        const call = node.expression;
        if (call?.type !== "CallExpression" || call.callee?.type !== "MemberExpression") return;
        const { object, property } = call.callee;
        if (object?.type !== "Identifier" || property?.name === undefined || !AWAITED.has(property.name)) return;
        const [ctx] = workflowAround(node)?.params ?? [];
        if (ctx?.name !== object.name) return;
        const what = `${object.name}.${property.name}()`;
        flag(node, `Nobody waits for ${what}. Put await or return before it, or void where that is meant.`);
      },
    };
  },
};

/**
 * The lint plugin: `reprise/no-nondeterminism` finds workflow code that asks the machine instead of `ctx`.
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
