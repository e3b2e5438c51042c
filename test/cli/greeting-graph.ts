// The recorded graph, whose calls have distinct inputs and answers.

import { append, END, graph, START } from "reprise";

export const buildGreeting = (greeting: string, answer: string) =>
  graph("talk", { state: { said: append<string>() } })
    .node("greet", async (ctx) => ({
      said: [await ctx.run("greet", { greeting }, (_op, asked) => `${asked.greeting}!`)],
    }))
    .node("answer", { retry: { maxAttempts: 2, baseDelay: 1 } }, async (ctx) => {
      ctx.label("answered");
      if (ctx.attempt === 1) throw new Error("not yet");
      return { said: [await ctx.run("answer", () => answer)] };
    })
    .edge(START, "greet")
    .edge("greet", "answer")
    .edge("answer", END);

export const greeting = buildGreeting("hello", "fine");
