// The types of `describeFlow`. Compiled, not run.

import { flow, typed, workflow } from "reprise";
import { describeFlow, type FlowDescription, type FlowNodeKind } from "reprise/describe";

const made = flow("made", { input: typed<number>() })
  .spread(
    "each",
    ["input"],
    ({ input }) => [input],
    (_ctx, item) => item,
  )
  .output(["each"], ({ each }) => each);

const described: FlowDescription = describeFlow(made);
const kinds: readonly FlowNodeKind[] = described.nodes.map(({ kind }) => kind);
const sides: readonly (boolean | undefined)[] = described.nodes.map(({ branch }) => branch?.side);
const sources: readonly (string | null)[] = described.edges.map(({ from }) => from);
void [kinds, sides, sources];

// @ts-expect-error a workflow is no flow
describeFlow(workflow("none", async () => 1));

// @ts-expect-error without an output it is no definition
describeFlow(flow("open", { input: typed<number>() }));

// @ts-expect-error a description is not changed
described.nodes[0]!.name = "other";
