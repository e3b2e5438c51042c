// Compare card: this run and another one side by side, step by step, from where they diverge.

import type { JSX } from "preact";
import type { DiffBody } from "../../../../src/contract/history.ts";
import type { RunDetail } from "../../../../src/contract/run.ts";
import { at } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, Command } from "../../components/controls.tsx";
import { Status } from "../../components/status.tsx";
import { preview } from "../../graph/preview.ts";
import { useResource } from "../../resource.ts";
import { href, runPath } from "../../router.ts";

interface CompareProps {
  readonly run: RunDetail;
  readonly other: string;
  /** Absent: the comparison stays. */
  readonly onClose?: () => void;
}

export function CompareCard({ run, other, onClose }: CompareProps): JSX.Element {
  const isOfBoth = ({ kind, data }: { kind: string; data: Readonly<Record<string, unknown>> }): boolean =>
    kind === "run" && (data["id"] === run.id || data["id"] === other);
  const there = useResource<RunDetail>(at`/v1/runs/${other}`, { when: isOfBoth });
  const { data, problem } = useResource<DiffBody>(at`/v1/runs/${run.id}/diff/${other}`, {
    query: { limit: 100 },
    when: isOfBoth,
    every: 1000,
  });
  return (
    <section class="card" aria-label="Comparison">
      <header>
        <h2>Compared with</h2>
        <a class="link mono any" href={href(runPath(other), { with: run.id })}>
          {other}
        </a>
        {there.data !== undefined && <Status status={there.data.status} />}
        <span class="grow" />
        {onClose !== undefined && <Button kind="ghost" small icon="x" label="Close the comparison" onClick={onClose} />}
      </header>
      {problem !== undefined && data === undefined ? (
        <p class="pad bad any">{problem.detail}</p>
      ) : data === undefined ? (
        <p class="pad muted">Loading …</p>
      ) : data.items.length === 0 ? (
        <p class="pad soft">Both runs are the same{there.data?.endedAt === undefined ? " so far" : ""}.</p>
      ) : (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Differences">
          <table class="tbl tight cmp">
            <thead>
              <tr>
                <th>At</th>
                <th>Value</th>
                <th>{run.id}</th>
                <th>{other}</th>
              </tr>
            </thead>
            <tbody>
              {data.items.map((item) =>
                item.values.length === 0 ? (
                  <tr key={item.at}>
                    <td class="nowrap">{item.at}</td>
                    <td class="muted">—</td>
                    <td>{item.in === "there" ? <span class="muted">not there</span> : "ran"}</td>
                    <td>{item.in === "here" ? <span class="muted">not there</span> : "ran"}</td>
                  </tr>
                ) : (
                  item.values.map((value, index) => (
                    <tr key={`${item.at} ${value.name}`}>
                      <td class="nowrap">{index === 0 ? item.at : ""}</td>
                      <td class="mono any">{value.name}</td>
                      <td class="mono any del">
                        {item.in === "there" ? <span class="muted">not there</span> : preview(value.here, 300)}
                      </td>
                      <td class="mono any add">
                        {item.in === "here" ? <span class="muted">not there</span> : preview(value.there, 300)}
                      </td>
                    </tr>
                  ))
                ),
              )}
            </tbody>
          </table>
        </div>
      )}
      <p class="pad row row-w">
        {data?.firstDivergence !== undefined && <span class="soft">first difference at {data.firstDivergence}</span>}
        {data?.more === true && <span class="soft">only the first differences are shown</span>}
        <Command text={command("diff", run.id, other)} />
      </p>
    </section>
  );
}
