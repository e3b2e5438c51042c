// Replay of graphs and recorded I/O: what is inferred, and what must not compile. Checked by `tsc`, never run.

import {
  createEngine,
  graph,
  last,
  START,
  type Replay,
  type ReplayDifference,
  type ReplayEnd,
  type ReplayOptions,
} from "reprise";
import { recordedIO, type RecordedIO } from "reprise/checkpoints";

const ask = graph("ask", { state: { text: last("") } })
  .node("think", { effects: { recordable: true } }, async (ctx) => {
    const { answer, length } = await ctx.run("llm", { prompt: "hi" }, (_op, request) => ({
      answer: request.prompt,
      length: request.prompt.length,
    }));
    const doubled: number = length * 2;
    // @ts-expect-error: what is recorded is data
    await ctx.run("stream", () => new Response());
    // @ts-expect-error: the request is what was given
    await ctx.run("llm", { prompt: "hi" }, (_op, request) => request.promt);
    return { text: `${answer} ${doubled}` };
  })
  .edge(START, "think");

export async function replays(): Promise<void> {
  await using engine = await createEngine({ store: "sqlite::memory:", definitions: [ask] });
  const run = engine.get(ask, "a");
  const full: Replay = await run.replay();
  const options: ReplayOptions = { mode: "resume", from: { label: "asked" }, strict: false };
  const resumed = await run.replay(options);
  await run.replay({ mode: "full", live: ["think"], generation: 0 });
  await run.replay({ mode: "resume", from: 3 });
  if (full.status === "mismatch") {
    const difference: ReplayDifference = full;
    const { step, node, attempt, expected, actual, where, message } = difference;
    console.log(step?.toFixed(), node?.length, attempt?.toFixed(), expected, actual, where, message);
    // @ts-expect-error: a mismatch has no digest
    console.log(full.digest);
  }
  if (resumed.status === "same") {
    const end: ReplayEnd | undefined = resumed.end;
    if (end?.status === "completed") console.log(end.output);
    else if (end?.status === "failed") console.log(end.error);
    // @ts-expect-error: only what has completed has an output
    else console.log(end?.output);
    for (const { node } of resumed.warnings ?? []) console.log(node);
    const { recorded, live } = resumed.calls ?? { recorded: 0, live: 0 };
    console.log(recorded + live);
  }
  // @ts-expect-error: there is no such mode
  await run.replay({ mode: "half" });
  // @ts-expect-error: a checkpoint is a step or a label
  await run.replay({ mode: "resume", from: "asked" });
  // @ts-expect-error: verify compares everything
  await run.verify({ strict: false });
  const calls: readonly RecordedIO[] = await recordedIO(run.journal());
  const slow = calls.filter(({ durationMs = 0 }) => durationMs > 1_000).map(({ node, hash, at }) => [node, hash, at]);
  console.log(slow);
  // @ts-expect-error: a call says what came back, not what it means
  console.log(calls[0]?.response.text);
}
