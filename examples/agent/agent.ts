// The agent: a model that requests tools, a person who approves the dangerous one, and a loop until there is an answer.

import { append, END, graph, last, promise, START } from "reprise";
import { askModel, isDangerous, useTool, type Message, type ToolCall } from "./outside.ts";

export const agent = graph("agent", {
  state: {
    messages: append<Message>(),
    calls: last<readonly ToolCall[]>([]), // the tools the model requested
    answer: last<string | null>(null),
  },
  ports: { approval: promise<{ ok: boolean; by: string }>() },
  output: (state) => state.answer,
  maxSteps: 20, // ends a model that never answers
})
  .node("think", { timeout: "60 s", retry: { maxAttempts: 3 } }, async (ctx, { messages }) => {
    // The request and the answer are recorded: a replay compares the request and returns the recorded answer.
    const reply = await ctx.run("llm", { messages }, (op, request) => askModel(request.messages, op));
    return { messages: [{ role: "model", text: reply.text }], calls: reply.calls, answer: reply.answer };
  })
  .node("approve", async (ctx, { calls }) => {
    // A waiting run is a row in the store: no process has to stay up, for a minute or for a day.
    const decision = await ctx.promise("approval", { timeout: "1 day", show: calls });
    if (decision?.ok === true) return ctx.label("approved");
    return { calls: [], messages: [{ role: "person", text: `Refused by ${decision?.by ?? "timeout"}.` }] };
  })
  .node("tool", { retry: { maxAttempts: 3 } }, async (ctx, _state, call: ToolCall) => {
    const text = await ctx.run(call.tool, call, (op) => useTool(call, op));
    return { messages: [{ role: "tool", text }] };
  })
  .node("reply", async (ctx, { answer }) => {
    // The commit of this step writes the message to the outbox; a worker delivers it, also if this process dies.
    ctx.send("mail", { to: "ann@example.org", text: answer });
    ctx.label("answered");
  })
  .edge(START, "think")
  .edge("think", "reply", ({ answer }) => answer !== null)
  .edge("think", "approve", ({ calls }) => calls.some(isDangerous))
  .spread("think", "tool", ({ calls }) => calls) // all tools at once, one item each
  .edge("approve", "think", ({ calls }) => calls.length === 0)
  .spread("approve", "tool", ({ calls }) => calls)
  .edge("tool", "think") // once, when all tools are done
  .edge("reply", END);

export const QUESTION = {
  messages: [{ role: "user", text: "Order 1042 was charged three times. Please give me back what is too much." }],
} as const;
