// Report of an evaluation: each run beside its fork, with scores and the first difference; the selected pair side by side.

import type { JSX } from "preact";
import type { EvaluatedRunBody, EvaluationBody } from "../../../../src/contract/evaluation.ts";
import type { RunDetail } from "../../../../src/contract/run.ts";
import { at } from "../../api.ts";
import { Button, NowLine } from "../../components/controls.tsx";
import { Json } from "../../components/json.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { Status } from "../../components/status.tsx";
import { plural } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { useResource } from "../../resource.ts";
import { href, param, runPath, setQuery } from "../../router.ts";
import { useTitle } from "../../title.ts";
import { CompareCard } from "../run/compare-card.tsx";
import { changeText, costText, differenceText, scoreText, shownRuns, type ShownRuns } from "./model.ts";

export function ReportPage({ id }: { readonly id: string }): JSX.Element {
  useTitle(`Evaluation ${id}`);
  const { data, problem } = useResource<EvaluationBody>(at`/v1/evals/${id}`);
  if (data === undefined)
    return <p class={problem === undefined ? "muted" : "bad"}>{problem?.detail ?? "Loading …"}</p>;
  return <Report report={data} />;
}

function Report({ report }: { readonly report: EvaluationBody }): JSX.Element {
  const { id, definition, counts, scores, cost } = report;
  const shown: ShownRuns = param("show") === "all" || counts.same === counts.total ? "all" : "changed";
  const runs = shownRuns(report.runs, shown);
  const sel = runs.find(({ run }) => run === param("sel")) ?? runs[0];
  const move = (by: number): void => {
    const place = runs.findIndex(({ run }) => run === sel?.run) + by;
    const next = runs[Math.max(0, Math.min(runs.length - 1, place))];
    if (next !== undefined) setQuery({ sel: next.run });
  };
  const toggle = (): void => setQuery({ show: shown === "all" ? undefined : "all" });
  useKeys("Evaluation", [
    { keys: "j", label: "next run", run: () => move(1) },
    { keys: "k", label: "previous run", run: () => move(-1) },
    { keys: "d", label: "only differences, or all", run: toggle },
  ]);
  return (
    <>
      <div class="head">
        <h1 class="any">{id}</h1>
        <span class="soft any">
          {definition}
          {changeText(report) !== "" && ` · ${changeText(report)}`}
        </span>
      </div>
      <FirstLine report={report} />
      <section class="card ev" aria-label="Scores">
        <div class="figures">
          {Object.entries(scores).map(([name, { mean, min, failed }]) => (
            <div key={name} class="figure">
              <span class="eyebrow">{name}</span>
              <b>{scoreText(mean)}</b>
              <span class="sub">
                lowest {scoreText(min)}
                {failed > 0 && <span class="hot"> · the scorer failed {plural(failed, "time")}</span>}
              </span>
            </div>
          ))}
          {cost !== undefined && (
            <div class="figure">
              <span class="eyebrow">cost</span>
              <b>{costText(cost)}</b>
              <span class="sub">of all forks</span>
            </div>
          )}
        </div>
      </section>
      <section class="card ev" aria-label="Runs">
        <header>
          <h2>{shown === "all" ? "Runs" : "Differences"}</h2>
          <span class="muted">{runs.length}</span>
          <span class="grow" />
          {counts.same < counts.total && (
            <Button kind="ghost" small keys="d" onClick={toggle}>
              {shown === "all" ? "Only differences" : `All ${counts.total}`}
            </Button>
          )}
        </header>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Runs, table">
          <table class="tbl ev-tbl pairs">
            <thead>
              <tr>
                <th>Run</th>
                <th>Was</th>
                <th>Is</th>
                {Object.keys(scores).map((name) => (
                  <th key={name} class="num">
                    {name}
                  </th>
                ))}
                <th>First difference</th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <PairRow key={run.run} pair={run} scores={Object.keys(scores)} isCurrent={run.run === sel?.run} />
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {sel !== undefined && <Pair key={sel.run} pair={sel} />}
      <KeyRow
        keys={[
          ["J K", "move"],
          ["D", "differences or all"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

function FirstLine({ report }: { readonly report: EvaluationBody }): JSX.Element {
  const { same, changed, stopped, skipped, total } = report.counts;
  const isSame = same === total;
  return (
    <NowLine
      status={stopped > 0 ? "blocked" : isSame ? "completed" : "waiting"}
      lead={
        stopped > 0
          ? `${plural(stopped, "fork")} stopped before the end.`
          : isSame
            ? "Every fork did the same as its run."
            : `${plural(changed, "fork")} differed.`
      }
    >
      {same} of {total} did the same{skipped > 0 && `, ${skipped} skipped`}.
    </NowLine>
  );
}

interface PairProps {
  readonly pair: EvaluatedRunBody;
}

function PairRow({
  pair,
  scores,
  isCurrent,
}: PairProps & { scores: readonly string[]; isCurrent: boolean }): JSX.Element {
  const { run, was, is } = pair;
  return (
    <tr
      class={isCurrent ? "cur" : ""}
      aria-current={isCurrent ? "true" : undefined}
      onClick={() => setQuery({ sel: run })}
    >
      <td class="any">
        <a class="mono link" href={href(runPath(run))}>
          {run}
        </a>
      </td>
      <td>
        <Status status={was.status} />
      </td>
      <td>{is === undefined ? <Status status="skipped" /> : <Status status={is.status} />}</td>
      {scores.map((name) => (
        <td key={name} class="num" data-label={name}>
          {pair.scores[name] === undefined ? <span class="muted">–</span> : scoreText(pair.scores[name])}
        </td>
      ))}
      <td class="any soft">{differenceText(pair)}</td>
    </tr>
  );
}

/** The outputs side by side, and what differs between the runs. */
function Pair({ pair }: PairProps): JSX.Element {
  const { run, fork, is, skipped, scoreErrors = {} } = pair;
  const here = useResource<RunDetail>(at`/v1/runs/${run}`);
  const there = useResource<RunDetail>(fork === undefined ? undefined : at`/v1/runs/${fork}`);
  const problem = is?.error ?? skipped;
  return (
    <>
      <section class="card ev" aria-label="Outputs">
        <header>
          <h2>Outputs</h2>
        </header>
        <div class="two outputs">
          <Side title="was" id={run} run={here.data} problem={here.problem?.detail} />
          <Side title="is" id={fork} run={there.data} problem={problem?.message ?? there.problem?.detail} />
        </div>
        {Object.entries(scoreErrors).map(([name, message]) => (
          <p key={name} class="pad bad any">
            The scorer {name} failed: {message}
          </p>
        ))}
      </section>
      {here.data !== undefined && there.data !== undefined && fork !== undefined && (
        <CompareCard run={here.data} other={fork} />
      )}
    </>
  );
}

function Side(props: {
  readonly title: string;
  readonly id: string | undefined;
  readonly run: RunDetail | undefined;
  readonly problem: string | undefined;
}): JSX.Element {
  const { title, id, run, problem } = props;
  return (
    <div class="side">
      <p class="row row-w">
        <span class="eyebrow">{title}</span>
        {id === undefined ? (
          <span class="muted">in another store</span>
        ) : (
          <a class="mono link any" href={href(runPath(id))}>
            {id}
          </a>
        )}
      </p>
      {run?.output === undefined ? (
        <p class={problem === undefined ? "muted" : "bad any"}>{problem ?? "no output"}</p>
      ) : (
        <Json value={run.output} label={`output of ${id ?? title}`} />
      )}
    </div>
  );
}
