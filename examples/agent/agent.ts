// The agent: a model that asks for tools, a person who decides about the dangerous one, a loop until there is an answer.

import { append, END, graph, last, promise, START } from "reprise";
import { askModel, isDangerous, useTool, type Message, type ToolCall } from "./outside.ts";

export const agent = graph("agent", {
  state: {
    messages: append<Message>(),
    calls: last<readonly ToolCall[]>([]), // what the model wants done next
    answer: last<string | null>(null),
  },
  ports: { approval: promise<{ ok: boolean; by: string }>() },
  output: (state) => state.answer,
  maxSteps: 20, // a model that never comes to an end does
})
  .node("think", { timeout: "60 s", retry: { maxAttempts: 3 } }, async (ctx, { messages }) => {
    // Request and answer are recorded: a replay compares the one and is served the other.
    const reply = await ctx.run("llm", { messages }, (op, request) => askModel(request.messages, op));
    return { messages: [{ role: "model", text: reply.text }], calls: reply.calls, answer: reply.answer };
  })
  .node("approve", async (ctx, { calls }) => {
    // A minute or a day: while the run waits it is a row in the store, no process has to stay up for it.
    const decision = await ctx.promise("approval", { timeout: "1 day", show: calls });
    if (decision?.ok === true) return ctx.label("approved");
    return { calls: [], messages: [{ role: "person", text: `Refused by ${decision?.by ?? "nobody"}.` }] };
  })
  .node("tool", { retry: { maxAttempts: 3 } }, async (ctx, _state, call: ToolCall) => {
    const text = await ctx.run(call.tool, call, (op) => useTool(call, op));
    return { messages: [{ role: "tool", text }] };
  })
  .node("reply", async (ctx, { answer }) => {
    // In the outbox with the commit of this step, delivered after it, also when this process dies.
    ctx.send("mail", { to: "ann@example.org", text: answer });
    ctx.label("answered");
  })
  .edge(START, "think")
  .edge("think", "reply", ({ answer }) => answer !== null)
  .edge("think", "approve", ({ calls }) => calls.some(isDangerous))
  .spread("think", "tool", ({ calls }) => calls) // all at once, one item each
  .edge("approve", "think", ({ calls }) => calls.length === 0)
  .spread("approve", "tool", ({ calls }) => calls)
  .edge("tool", "think") // once, when all of them are done
  .edge("reply", END);

export const QUESTION = {
  messages: [{ role: "user", text: "Order 1042 was charged three times. Please give me back what is too much." }],
} as const;
