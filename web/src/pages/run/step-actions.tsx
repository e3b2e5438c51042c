// Actions of a step in the header of its panel: a fork that answers this step again.

import type { JSX } from "preact";
import type { RunDetail, RunSummary } from "../../../../src/contract/run.ts";
import type { TimelineRow } from "../../../../src/contract/timeline.ts";
import { at, post } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button } from "../../components/controls.tsx";
import { ask } from "../../components/dialog.tsx";
import { useKeys } from "../../keys.ts";
import { isStale } from "../../live.ts";
import { go, href, runPath } from "../../router.ts";
import { can } from "../../site.ts";

/** Steps of a graph are forked from their checkpoint, on the view of the graph. */
function canFork(run: RunDetail, row: TimelineRow): boolean {
  return can("operator") && run.kind !== "graph" && row.state === "completed";
}

export function StepActions({ run, row }: { readonly run: RunDetail; readonly row: TimelineRow }): JSX.Element | null {
  const fork = (): void =>
    ask({
      title: `Fork ${run.id} at ${row.name}?`,
      text: `A new run takes over everything that was recorded before ${row.command} and executes it again. This run stays as it is.`,
      confirm: "Start the fork",
      reason: true,
      command: () => command("fork", run.id, "--at", row.command),
      run: async (reason) => {
        const started = await post<RunSummary>(at`/v1/runs/${run.id}/fork`, {
          at: row.command,
          ...(reason !== "" && { reason }),
        });
        go(href(runPath(started.id)));
      },
    });
  useKeys("Step", [
    { keys: "Shift+F", label: "Fork here", run: fork, when: () => canFork(run, row) && !isStale.value },
  ]);
  if (!canFork(run, row)) return null;
  return (
    <Button small icon="fork" acts onClick={fork}>
      Fork here
    </Button>
  );
}
