// History: how recent promises were settled: by whom, why, when, after which wait.

import type { JSX } from "preact";
import type { SettledPromiseBody } from "../../../../src/contract/run.ts";
import { now } from "../../clock.ts";
import { Status } from "../../components/status.tsx";
import { count, duration, shortTime } from "../../format.ts";
import { useResource } from "../../resource.ts";
import { href, runPath } from "../../router.ts";
import { medianWait, outcomeOf, textOfPromise } from "./promise-text.ts";

interface History {
  readonly items: readonly SettledPromiseBody[];
  readonly covers: { readonly complete: boolean; readonly text: string };
}

const FEW = 5;

export function PromiseHistory({
  all,
  definition,
}: {
  readonly all: boolean;
  readonly definition: string;
}): JSX.Element | null {
  const { data, problem } = useResource<History>("/v1/promises/history", {
    query: { limit: 100, definition },
    when: ({ kind }) => kind === "promise",
    every: 1000,
  });
  if (problem !== undefined) return <p class="bad">{problem.detail}</p>;
  if (data === undefined) return null;
  const items = all ? data.items : data.items.slice(0, FEW);
  if (items.length === 0 && !all) return null;
  return (
    <section class="card hist" aria-label="History">
      <header>
        <h2>History</h2>
        <span class="muted">{summary(data.items)}</span>
      </header>
      {items.length === 0 ? (
        <p class="none muted">No promise was settled in the last 24 hours.</p>
      ) : (
        <table class="tbl">
          <thead>
            <tr>
              <th>Answer</th>
              <th>What</th>
              <th>By</th>
              <th>Why</th>
              <th class="num">At</th>
              <th class="num">After</th>
            </tr>
          </thead>
          <tbody>
            {items.map((one) => (
              <HistoryRow key={`${one.run} ${one.name} ${one.key ?? ""} ${one.settledAt}`} one={one} />
            ))}
          </tbody>
        </table>
      )}
      {(all || !data.covers.complete) && <p class="none muted">{data.covers.text}</p>}
    </section>
  );
}

function HistoryRow({ one }: { readonly one: SettledPromiseBody }): JSX.Element {
  const { word, status } = outcomeOf(one);
  const why = one.reason ?? one.error?.message;
  return (
    <tr>
      <td>
        <Status status={status} word={word} />
      </td>
      <td class="any">
        {textOfPromise(one).title}{" "}
        <a class="mono muted" href={href(runPath(one.run))}>
          {one.run}
        </a>
      </td>
      <td class="any">{one.by ?? <span class="muted">—</span>}</td>
      <td class="soft any">{why ?? <span class="muted">—</span>}</td>
      <td class="num nowrap">{shortTime(one.settledAt, now.value)}</td>
      <td class="num nowrap">
        {one.createdAt === undefined ? "—" : duration(Date.parse(one.settledAt) - Date.parse(one.createdAt))}
      </td>
    </tr>
  );
}

function summary(items: readonly SettledPromiseBody[]): string {
  if (items.length === 0) return "last 24 h: none";
  const words = Map.groupBy(items, (one) => outcomeOf(one).word.toLowerCase());
  const counts = [...words].map(([word, { length }]) => `${count(length)} ${word}`).join(", ");
  const median = medianWait(items);
  return `last 24 h: ${counts}${median === undefined ? "" : ` · median answer ${duration(median)}`}`;
}
