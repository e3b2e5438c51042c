// Graphs among queues, versions and ports. Checked by `tsc`, never run.

import { graph, last, promise, query, queue, signal, START, stream, update } from "reprise";

const builds = queue("builds", { perKey: { concurrency: 1 } });

graph("build", {
  state: { team: last(""), size: last(0) },
  queue: builds,
  // The key knows the input: a first change of the channels.
  key: ({ team, size }) => `${team?.toUpperCase() ?? "none"} ${size?.toFixed()}`,
  version: 2,
  label: "gpu",
  deadline: "1 hour",
  ports: { go: promise<number>(), words: stream<string>() },
})
  .node("work", async (ctx) => {
    ctx.emit("words", "working");
    return { size: await ctx.promise("go") };
  })
  .edge(START, "work");

// @ts-expect-error a graph receives no signals
graph("wrong", { state: {}, ports: { add: signal<number>() } });
// @ts-expect-error a graph answers no queries
graph("wrong", { state: {}, ports: { total: query<number>() } });
// @ts-expect-error a graph answers no updates
graph("wrong", { state: {}, ports: { set: update<number>() } });
// @ts-expect-error nodes run where their run is: they have no label of their own
graph("wrong", { state: {} }).node("fit", { label: "gpu" }, () => ({}));
// @ts-expect-error the input has no such channel
graph("wrong", { state: { team: last("") }, queue: builds, key: (input) => input.tema });
