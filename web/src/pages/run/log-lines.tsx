// Log lines: what the code of a run logged, and what people and programs did with the run, in the process of this server.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LogLineBody, RunDetail } from "../../../../src/contract/run.ts";
import { at } from "../../api.ts";
import { Hidden } from "../../components/json.tsx";
import { exactTime } from "../../format.ts";
import { preview } from "../../graph/preview.ts";
import { useResource, type Resource } from "../../resource.ts";
import { can } from "../../site.ts";

export interface LogPage {
  /** Newest first: the last 500. */
  readonly items: readonly LogLineBody[];
  readonly covers: string;
}

/** `command`: only lines of its code. */
export function useLogLines(run: RunDetail, command?: string): Resource<LogPage> {
  return useResource<LogPage>(can("reader") ? at`/v1/runs/${run.id}/logs` : undefined, {
    query: { command, order: "last", limit: 500 },
    when: ({ kind, data }) => kind === "run" && data["id"] === run.id,
    every: 1000,
  });
}

export function LogLines(props: {
  readonly lines: readonly LogLineBody[];
  readonly covers: string | undefined;
  readonly title?: string;
}): JSX.Element {
  if (!can("reader")) {
    return (
      <section>
        <Hidden />
      </section>
    );
  }
  return (
    <section>
      {props.title !== undefined && <h3>{props.title}</h3>}
      {props.lines.length === 0 && <p class="muted">No line.</p>}
      <ul class="logs">
        {props.lines.toReversed().map((line) => (
          <li key={line.cursor}>
            <span class="muted">{exactTime(line.at)}</span>
            <span class={line.level === "warn" ? "w" : line.level === "error" ? "e" : ""}>{line.level}</span>
            <span>
              {line.message} {line.data !== undefined && <span class="muted">{preview(line.data)}</span>}
            </span>
          </li>
        ))}
      </ul>
      {props.covers !== undefined && <p class="muted">{props.covers}</p>}
    </section>
  );
}

/** All lines of the run. Closed at first, and read only when it is open. */
export function RunLog({ run }: { readonly run: RunDetail }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="card payloads" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Log of the run</summary>
      {isOpen && <AllLines run={run} />}
    </details>
  );
}

function AllLines({ run }: { readonly run: RunDetail }): JSX.Element {
  const { data } = useLogLines(run);
  return (
    <div class="pad">
      <LogLines lines={data?.items ?? []} covers={data?.covers} />
    </div>
  );
}
