// Time travel and replay of graphs: what is inferred, and what must not compile. Checked by `tsc`, never run.

import {
  append,
  graph,
  last,
  merge,
  promise,
  START,
  workflow,
  type Checkpoint,
  type Engine,
  type Run,
  type RunDiff,
  type SchedulerState,
  type StateOf,
} from "reprise";
import { checkpointFromJson, checkpointToJson, recordedIO, type WorkItem } from "reprise/checkpoints";

/** Compiles when the two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._same: Same<A, B> extends true ? [] : [never]): void {}

const agent = graph("agent", {
  state: { messages: append<string>(), answer: last<string | null>(null), facts: merge<{ a?: number }>({}) },
  ports: { approve: promise<{ ok: boolean }>() },
  output: (state) => state.answer,
})
  .node("think", async () => {})
  .edge(START, "think");
const other = graph("other", { state: { n: last(0) } })
  .node("a", async () => {})
  .edge(START, "a");
const plain = workflow("plain", async () => 1);
declare const engine: Engine<typeof agent | typeof other | typeof plain>;
declare const run: Run<typeof agent>;
declare const stranger: Run<typeof other>;
declare const workflowRun: Run<typeof plain>;

interface State {
  readonly messages: readonly string[];
  readonly answer: string | null;
  readonly facts: { a?: number };
}
same<StateOf<typeof agent>, State>();

export async function travel(): Promise<void> {
  for await (const checkpoint of run.checkpoints({ after: 2, recordedIO: true })) {
    same<typeof checkpoint, Checkpoint<State>>();
    const { step, state, frontier, label, idempotencyKey, rngSeed, timestamp } = checkpoint;
    same<typeof state, State>();
    same<(typeof frontier)[number], WorkItem<State>>();
    const fields: [number, string | undefined, string, bigint, Date] = [
      step,
      label,
      idempotencyKey,
      rngSeed,
      timestamp,
    ];
    void fields;
    const text: string = checkpointToJson(checkpoint, { itemState: false });
    same<ReturnType<typeof checkpointFromJson>["step"], number>();
    void checkpointFromJson(text);
  }
  const one = await run.checkpoint({ label: "asked" });
  same<typeof one, Checkpoint<State>>();
  const state = await run.stateAt(3);
  same<typeof state, State>();
  same<Awaited<ReturnType<typeof run.stateAt>>, State>();

  const fork = await run.fork({ step: 3, patch: { answer: "no", messages: [] }, id: "b", tags: ["x"] });
  same<typeof fork, Run<typeof agent>>();
  await fork.resolve("approve", { ok: false });
  await run.fork({ label: "asked", deadline: "1 hour", priority: 2, version: 1 });
  await run.fork({ answers: { "Node(3.0)": { answer: "no" } }, effects: "recorded" });
  await run.fork({ step: 3, answers: { "Node(4.0)/Operation(0)": 1 }, effects: "live" });
  const diff = await run.diff(fork, { limit: 5 });
  same<typeof diff, RunDiff>();
  const here: unknown = diff.steps[0]?.channels["answer"]?.here;
  void here;
  const named = await engine.get("agent", "a").stateAt(0);
  same<typeof named, State>();

  const replay = await run.replay({ strict: false, live: ["think"] });
  if (replay.status === "mismatch") {
    const where: readonly (number | string | undefined)[] = [replay.step, replay.node, replay.attempt];
    console.log(where, replay.expected, replay.actual);
  } else console.log(replay.digest, replay.calls?.recorded);
  await run.replay({ mode: "resume", from: 3 });
  await run.replay({ mode: "resume", from: { label: "asked" } });
  const scheduler = await run.scheduler();
  same<typeof scheduler, SchedulerState>();
  for (const { name, request, response, hash } of await recordedIO(run.journal()))
    console.log(name, request, response, hash);
}

export async function astray(): Promise<void> {
  // @ts-expect-error the state has no such channel
  void (await run.stateAt(1)).nothing;
  // @ts-expect-error a step is a number, a label an object
  await run.stateAt("asked");
  // @ts-expect-error a graph is forked from a step
  await run.fork({ at: "Task(3)" });
  // @ts-expect-error a fork begins somewhere
  await run.fork({ patch: { answer: "no" } });
  // @ts-expect-error a fork begins at a step or at a label
  await run.fork({ step: 1, label: "asked" });
  // @ts-expect-error a patch names channels that are there
  await run.fork({ step: 1, patch: { nothing: 1 } });
  // @ts-expect-error a patch replaces values, by their type
  await run.fork({ step: 1, patch: { messages: "one" } });
  // @ts-expect-error an option that is not there
  await run.fork({ step: 1, delay: "1 s" });
  // @ts-expect-error runs of two graphs have nothing to compare
  await run.diff(stranger);
  // @ts-expect-error a replay is full, or resumes from a step
  await run.replay({ mode: "live" });
  // @ts-expect-error nodes are named in a list
  await run.replay({ live: "think" });
  // @ts-expect-error an option that is not there
  await run.replay({ stict: false });
  // @ts-expect-error a workflow has no state of channels
  void (await workflowRun.stateAt(1)).answer;
}
