// The timeline of a run, read once for all parts of its page.

import type { RunDetail } from "../../../../src/contract/run.ts";
import type { Timeline } from "../../../../src/contract/timeline.ts";
import { at } from "../../api.ts";
import { useResource, type Resource } from "../../resource.ts";

/** It is read again after every change of the run, at most twice per second. */
export function useTimeline(run: RunDetail): Resource<Timeline> {
  return useResource<Timeline>(at`/v1/runs/${run.id}/timeline`, {
    query: { limit: 1000 },
    when: ({ kind, data }) => kind === "run" && data["id"] === run.id,
    every: 500,
  });
}
