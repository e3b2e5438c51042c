// The script of the offline models: what they answer to what has happened so far.

/** A tool that was called, and what it gave. */
export interface ToolResult {
  readonly tool: string;
  readonly output: unknown;
}

export interface Reply {
  readonly text: string;
  readonly calls: readonly { readonly id: string; readonly tool: string; readonly input: object }[];
}

/** Both models do the same work; one of them talks more. */
export type Style = "friendly" | "brief";

export function replyTo(question: string, results: readonly ToolResult[], style: Style): Reply {
  const ended = results.filter(({ tool }) => tool === "refund").map(({ output }) => asText(output));
  if (ended.length > 0) return { text: farewell(ended, style), calls: [] };

  const orders = results.filter(({ tool }) => tool === "getOrder").map(({ output }) => output as Order);
  const wrong = orders.filter(({ problem }) => problem !== null);
  if (wrong.length > 0) {
    const calls = wrong.map(({ order, cents, problem }) => ({
      id: `refund-${order}`,
      tool: "refund",
      input: { order, cents, why: problem },
    }));
    const what = wrong.map(({ order, problem }) => `order ${order} ${problem}`).join(", and ");
    return {
      text: style === "brief" ? "" : `You are right: ${what}. I ask a colleague to approve the refunds.`,
      calls,
    };
  }
  if (orders.length > 0) return { text: "I see nothing wrong with these orders.", calls: [] };

  const numbers = question.match(/\b\d{4}\b/g) ?? [];
  if (numbers.length === 0) return { text: "Which order is it about?", calls: [] };
  const calls = numbers.map((order) => ({ id: `order-${order}`, tool: "getOrder", input: { order } }));
  return { text: style === "brief" ? "" : "I am sorry to hear that. Let me look at your orders.", calls };
}

interface Order {
  readonly order: string;
  readonly cents: number;
  readonly problem: string | null;
}

function farewell(ended: readonly string[], style: Style): string {
  const lines = ended
    .map((line) => line.replace(/^denied: (.*)/, "One refund was declined: $1"))
    .map((line) => `${line}.`);
  if (style === "brief") return lines.join(" ");
  return `Thank you for your patience. ${lines.join(" ")} Is there anything else that I can do for you?`;
}

function asText(output: unknown): string {
  return typeof output === "string" ? output : JSON.stringify(output);
}
