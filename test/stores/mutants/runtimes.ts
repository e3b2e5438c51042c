import { rewriting, records, turns, without, type Mutant } from "./mutant.ts";

export const runtimesMutants: readonly Mutant[] = [
  turns("a turn adds no runtime", (turn) => without(turn, "runtime")),
  rewriting("a node of a flow adds no runtime", (write) =>
    write.write === "complete" && "item" in write.fence ? without(write, "runtime") : write,
  ),
  records("the runtimes of a run have no limit", (record) =>
    record.runtime.split("\n").length < 16 ? record : { ...record, runtime: `${record.runtime}\n{"code":"16"}` },
  ),
  records("a runtime is added again by every commit", ({ runtime, ...record }) => {
    const last = runtime.split("\n").at(-1);
    return { ...record, runtime: record.head > 1 ? `${runtime}\n${last}` : runtime };
  }),
];
