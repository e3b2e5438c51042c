// Views of a run: the parts of its page below the first line. Each is a module of its own, chosen by `view` in the address.

import type { ComponentType } from "preact";
import type { RunDetail } from "../../../../src/contract/run.ts";

/**
 * What every view gets. It reads the rest from the API, and the rest of its state from the address (router.R1). A view puts
 * `<ViewSwitch run={run} />` into its header, and marks a step by `step` in the address: the page shows the panel of that step.
 */
export interface RunViewProps {
  readonly run: RunDetail;
}

export interface RunView {
  readonly name: string;
  readonly label: string | ((run: RunDetail) => string);
  readonly load: () => Promise<{ readonly default: ComponentType<RunViewProps> }>;
  /** The row of keys under the page; absent: that of the timeline. */
  readonly keys?: (run: RunDetail) => readonly (readonly [string, string])[];
  /** Absent: of every run. */
  readonly shownFor?: (run: RunDetail) => boolean;
}

/** The first one that is shown for a run is its own view; graphs and flows start with their picture. */
export const RUN_VIEWS: readonly RunView[] = [
  {
    name: "graph",
    label: ({ kind }) => (kind === "flow" ? "Flow" : "Graph"),
    load: () => import("./graph-view.tsx"),
    shownFor: ({ kind }) => kind === "graph" || kind === "flow",
    keys: ({ kind, streams }) => [
      ...(kind === "graph"
        ? ([
            ["← →", "step"],
            ["L", "live"],
            ["⇧F", "fork here"],
          ] as const)
        : []),
      ["D", "compare with a fork"],
      ...(streams.length > 0 ? ([["S", "stream"]] as const) : []),
      ["C", "copy as CLI"],
      ["?", "all keys"],
    ],
  },
  { name: "timeline", label: "Timeline", load: () => import("./timeline-view.tsx") },
  { name: "journal", label: "Journal", load: () => import("./journal-view.tsx") },
  {
    name: "stream",
    label: "Stream",
    load: () => import("./stream-view.tsx"),
    shownFor: ({ kind, streams }) => kind === "workflow" && streams.length > 0,
  },
];
