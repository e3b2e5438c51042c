// Evals: the evaluations of the store, newest first, with their scores.

import type { JSX } from "preact";
import type { EvaluationSummary } from "../../../../src/contract/evaluation.ts";
import { now } from "../../clock.ts";
import { Command } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { longTime, plural } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { useResource } from "../../resource.ts";
import { go, href, param, setQuery } from "../../router.ts";
import { useTitle } from "../../title.ts";
import type { PageProps } from "../registry.ts";
import { changeText, costText, scoreText } from "./model.ts";
import { ReportPage } from "./report.tsx";
import "./evals.css";

const path = (id: string): string => `/evals/${encodeURIComponent(id)}`;

export default function EvalsPage({ params }: PageProps): JSX.Element {
  const { id } = params;
  return id === undefined ? <List /> : <ReportPage id={id} />;
}

function List(): JSX.Element {
  useTitle("Evals");
  const { data, problem } = useResource<{ readonly items: readonly EvaluationSummary[] }>("/v1/evals", {
    query: { limit: 50 },
    when: ({ kind }) => kind === "run",
    every: 3000,
  });
  const items = data?.items ?? [];
  const sel = param("sel") || items[0]?.id || "";
  const move = (by: number): void => {
    const place = items.findIndex(({ id }) => id === sel) + by;
    const next = items[Math.max(0, Math.min(items.length - 1, place))];
    if (next !== undefined) setQuery({ sel: next.id });
  };
  useKeys("Evals", [
    { keys: "j", label: "next evaluation", run: () => move(1) },
    { keys: "k", label: "previous evaluation", run: () => move(-1) },
    { keys: "Enter", label: "open", run: () => sel !== "" && go(path(sel)) },
  ]);
  return (
    <>
      <div class="head">
        <h1>Evals</h1>
      </div>
      {data === undefined ? (
        <p class={problem === undefined ? "muted" : "bad"}>{problem?.detail ?? "Loading …"}</p>
      ) : items.length === 0 ? (
        <Nothing />
      ) : (
        <section class="card" aria-label="Evaluations">
          <div class="scroll-x" tabIndex={0} role="region" aria-label="Evaluations, table">
            <table class="tbl ev-tbl">
              <thead>
                <tr>
                  <th>Evaluation</th>
                  <th>Definition</th>
                  <th>Scores</th>
                  <th>Runs</th>
                  <th>Cost</th>
                  <th>Ended</th>
                </tr>
              </thead>
              <tbody>
                {items.map((item) => (
                  <Row key={item.id} item={item} isCurrent={item.id === sel} />
                ))}
              </tbody>
            </table>
          </div>
        </section>
      )}
      <KeyRow
        keys={[
          ["J K", "move"],
          ["Enter", "open"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

function Row({ item, isCurrent }: { readonly item: EvaluationSummary; readonly isCurrent: boolean }): JSX.Element {
  const { id, definition, scores, counts, endedAt } = item;
  return (
    <tr class={isCurrent ? "cur" : ""}>
      <td class="any">
        <a class="link strong" href={href(path(id))}>
          {id}
        </a>
        <span class="sub">{changeText(item)}</span>
      </td>
      <td class="mono">{definition}</td>
      <td>
        {Object.entries(scores).map(([name, { mean }]) => (
          <span key={name} class="score">
            <span class="muted">{name}</span> <b>{scoreText(mean)}</b>
          </span>
        ))}
      </td>
      <td>
        {plural(counts.total, "run")}
        <span class="sub">
          {counts.same} same, {counts.changed} changed
          {counts.stopped > 0 && `, ${counts.stopped} stopped`}
        </span>
      </td>
      <td class="soft">{costText(item.cost)}</td>
      <td class="soft">{longTime(endedAt, now.value)}</td>
    </tr>
  );
}

function Nothing(): JSX.Element {
  return (
    <section class="card">
      <div class="state">
        <Icon name="fork" />
        <h2>No evaluation yet</h2>
        <p>An evaluation repeats recorded runs with changed code or another model, and scores the difference.</p>
        <Command text="reprise eval agent.ts --tag prod --model fast=strong --save" />
      </div>
    </section>
  );
}
