// A graph that calls a server through ctx.run.

import { append, END, graph, last, START } from "reprise";

interface Answer {
  readonly text: string;
  readonly done: boolean;
}

export const asking = (url: string) =>
  graph("asking", { state: { said: append<string>(), drawn: append<string>(), done: last(false) } })
    .node("ask", { retry: { maxAttempts: 3, baseDelay: 1, maxDelay: 1 } }, async (ctx, { said }) => {
      const answer = await ctx.run("ask", { count: said.length }, async (op, request): Promise<Answer> => {
        const response = await fetch(url, { method: "POST", body: JSON.stringify(request), signal: op.abortSignal });
        if (!response.ok) throw new Error(`the server says ${response.status}`);
        return (await response.json()) as Answer;
      });
      return { said: [answer.text], done: answer.done };
    })
    .node("each", async (ctx, _state, item: number) => ({
      drawn: [`${item} ${ctx.random()} ${ctx.uuid()} ${ctx.now().getTime()}`],
    }))
    .node("next", async () => {})
    .edge(START, "ask")
    .spread("ask", "each", ({ said }) => said.map((_, index) => index))
    .join(["each"], "next")
    .edge("next", END, ({ done }) => done)
    .edge("next", "ask");
