// The timeline as a table: the same data for screen readers, and for people who prefer numbers.

import type { JSX } from "preact";
import type { TimelineRow } from "../../../../src/contract/timeline.ts";
import { now } from "../../clock.ts";
import { Status } from "../../components/status.tsx";
import { exactDuration, exactTime } from "../../format.ts";
import { hrefWith, param } from "../../router.ts";
import { endOf, executionsOf, startOf, timesOf } from "./step-row.ts";

export function StepTable({ rows }: { readonly rows: readonly TimelineRow[] }): JSX.Element {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Steps">
      <table class="tbl tight">
        <thead>
          <tr>
            <th>Step</th>
            <th>Command</th>
            <th>State</th>
            <th class="num">Started</th>
            <th class="num">Queued</th>
            <th class="num">Worked</th>
            <th class="num">Took</th>
            <th class="num">Attempts</th>
            <th>Worker</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <StepTableRow key={row.command} row={row} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function StepTableRow({ row }: { readonly row: TimelineRow }): JSX.Element {
  const start = startOf(row);
  const end = endOf(row);
  const time = end === undefined ? now.value : end;
  const { queued, worked } = timesOf(row, time);
  const workers = [...new Set(executionsOf(row).map(({ span }) => span.worker ?? ""))].filter((name) => name !== "");
  return (
    <tr class={param("step") === row.command ? "on" : ""}>
      <td>
        <a class="link" href={hrefWith({ step: row.command })}>
          {row.name}
          {row.key !== undefined && ` ${row.key}`}
        </a>
      </td>
      <td class="mono muted">{row.command}</td>
      <td>
        <Status status={row.state} {...(row.state === "open" && { word: "Open" })} />
      </td>
      <td class="num mono">{start === undefined ? "—" : exactTime(start)}</td>
      <td class="num">{queued > 0 ? exactDuration(queued) : "—"}</td>
      <td class="num">{worked > 0 ? exactDuration(worked) : "—"}</td>
      <td class="num">{start === undefined ? "—" : exactDuration(time - start)}</td>
      <td class="num">{row.attempts}</td>
      <td>{workers.join(", ")}</td>
    </tr>
  );
}
