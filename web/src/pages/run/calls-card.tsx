// Calls card: what the code of nodes called: tasks, operations, children, waits for people.

import type { JSX } from "preact";
import type { TimelineRow } from "../../../../src/contract/timeline.ts";
import { Status } from "../../components/status.tsx";
import { count, duration, plural } from "../../format.ts";
import { hrefWith } from "../../router.ts";
import { tookOf } from "./step-row.ts";

interface CallsProps {
  readonly rows: readonly TimelineRow[];
  /** The step that is looked at. */
  readonly step: number | undefined;
}

const SHOWN = 12;

export function CallsCard({ rows, step }: CallsProps): JSX.Element | null {
  const calls = rows.filter(({ kind, parent }) => parent !== undefined && kind !== "node" && kind !== "spread");
  if (calls.length === 0) return null;
  const stepOf = (row: TimelineRow): number | undefined =>
    row.step ?? rows.find(({ command }) => command === row.parent)?.step;
  const near = step === undefined ? calls.slice(-SHOWN) : around(calls, (row) => stepOf(row) === step);
  return (
    <section class="card calls" aria-label="Calls">
      <header>
        <h2>Calls</h2>
        <span class="muted">
          {plural(calls.length, "call")} of nodes{near.length < calls.length && `, ${count(near.length)} shown`}
        </span>
      </header>
      <table class="tbl tight">
        <thead>
          <tr>
            <th>Step</th>
            <th>Call</th>
            <th>Kind</th>
            <th class="num">Attempts</th>
            <th class="num">Took</th>
          </tr>
        </thead>
        <tbody>
          {near.toReversed().map((row) => {
            const took = tookOf(row);
            return (
              <tr key={row.command} class={step !== undefined && stepOf(row) === step ? "on-step" : ""}>
                <td>{stepOf(row) ?? "—"}</td>
                <td class="any">
                  <a href={hrefWith({ view: "timeline", step: row.command })}>
                    <Status status={row.state} word={row.key === undefined ? row.name : `${row.name} · ${row.key}`} />
                  </a>
                </td>
                <td class="muted">{row.kind}</td>
                <td class="num">{count(row.attempts)}</td>
                <td class="num nowrap">{took === undefined ? "—" : duration(took)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

function around(calls: readonly TimelineRow[], isOn: (row: TimelineRow) => boolean): readonly TimelineRow[] {
  const first = calls.findIndex(isOn);
  const from = Math.max(0, Math.min(first === -1 ? 0 : first - 4, calls.length - SHOWN));
  return calls.slice(from, from + SHOWN);
}
