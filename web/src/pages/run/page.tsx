// Run: one run: why it does not move, what it did on a time scale, its journal, one step in detail, and what can be done.

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { RunDetail, RunSummary } from "../../../../src/contract/run.ts";
import type { Timeline } from "../../../../src/contract/timeline.ts";
import { at } from "../../api.ts";
import { now } from "../../clock.ts";
import { Icon } from "../../components/icon.tsx";
import { Hidden, Json } from "../../components/json.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { Badge, Status } from "../../components/status.tsx";
import { count, duration, longTime, plural, shortTime } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { usePolling } from "../../polling.ts";
import { useResource } from "../../resource.ts";
import { usePart } from "../../part.tsx";
import { go, href, hrefWith, param, runPath, setQuery } from "../../router.ts";
import { useTitle } from "../../title.ts";
import type { PageProps } from "../registry.ts";
import { Age } from "../runs/run-row.tsx";
import { BudgetFacts } from "./budget.tsx";
import { RunLog } from "./log-lines.tsx";
import { RunNowLine } from "./now-line.tsx";
import { expected, RunActions } from "./run-actions.tsx";
import { StepPanel } from "./step-panel.tsx";
import { useTimeline } from "./timeline-data.ts";
import { currentView } from "./view-switch.tsx";
import type { RunView } from "./views.ts";
import "./run.css";

const DETAIL_MS = 3000;
const TIMELINE_MS = 1500;

export default function RunPage({ params }: PageProps): JSX.Element {
  const id = params["id"]!;
  useTitle(id);
  const run = useResource<RunDetail>(at`/v1/runs/${id}`, {
    when: ({ kind, data }) => (kind === "run" && data["id"] === id) || (kind === "promise" && data["run"] === id),
  });
  // No event says that an attempt failed or that a worker is gone: the journal does not change by it.
  usePolling(() => run.state.peek().data?.endedAt === undefined && run.reload(), DETAIL_MS);
  useKeys("Page", [
    {
      keys: "Escape",
      label: "Close the panel, back to the list",
      run: () => (param("step") === "" ? go(href("/")) : setQuery({ step: "", tab: "", attempt: "" }, { push: true })),
    },
  ]);
  if (run.data === undefined) {
    if (run.problem === undefined) return <p class="muted">Loading …</p>;
    return (
      <section class="card">
        <div class="state">
          <h1>{run.problem.status === 404 ? `There is no run ${id}` : "The run cannot be shown"}</h1>
          <p>{run.problem.detail}</p>
          <a class="link" href={href("/", { status: "all" })}>
            All runs
          </a>
        </div>
      </section>
    );
  }
  return <LoadedRun run={run.data} />;
}

/** The status of a change that is under way, until the run has moved. */
function shownStatus(run: RunDetail): { readonly status: string; readonly pending: boolean } {
  const one = expected.value;
  if (one === undefined || one.run !== run.id || one.entries !== run.entries || one.status === run.status) {
    return { status: run.status, pending: false };
  }
  return { status: one.status, pending: true };
}

function LoadedRun({ run }: { readonly run: RunDetail }): JSX.Element {
  const { status, pending } = shownStatus(run);
  useEffect(() => {
    expected.value = undefined;
  }, [run.status, run.entries]);
  const step = param("step");
  const timeline = useTimeline(run);
  usePolling(() => isMoving(timeline.state.peek().data) && timeline.reload(), TIMELINE_MS);
  const row = step === "" ? undefined : timeline.data?.rows.find(({ command }) => command === step);
  return (
    <>
      <nav class="crumb" aria-label="Path">
        <a href={href("/")}>Runs</a>
        <Icon name="right" />
        <a href={href("/", { definition: run.definition, status: "all" })}>{run.definition}</a>
        {run.parent !== undefined && (
          <>
            <Icon name="right" />
            <a class="mono" href={href(runPath(run.parent))}>
              {run.parent}
            </a>
          </>
        )}
      </nav>
      <div class="rh">
        <h1 class="cut" title={run.id}>
          {run.id}
        </h1>
        <Badge status={status} pending={pending} />
        <span class="grow" />
        <RunActions run={run} />
      </div>
      <RunNowLine run={run} status={status} />
      <Facts run={run} workedMs={timeline.data?.workedMs} takeovers={timeline.data?.takeovers.length ?? 0} />
      <div class={row === undefined ? "" : "split"}>
        <div>
          <LazyView view={currentView(run)} run={run} />
          <Payloads run={run} />
          <RunLog run={run} />
          {run.children > 0 && <Children run={run} />}
        </div>
        {row !== undefined && <StepPanel key={row.command} run={run} row={row} />}
      </div>
      <KeyRow
        keys={
          currentView(run).keys?.(run) ?? [
            ["↑ ↓", "step"],
            ["← →", "attempt"],
            ["Enter", "open panel"],
            ["E", "failed only"],
            ["Z", "fold idle time"],
            ["C", "copy as CLI"],
            ["Esc", "back to the list"],
            ["?", "all keys"],
          ]
        }
      />
    </>
  );
}

/** Whether executions may begin, fail or be lost without an entry in the journal. */
function isMoving(timeline: Timeline | undefined): boolean {
  return (
    timeline?.endedAt === undefined &&
    (timeline?.rows.some(({ state }) => state === "running" || state === "queued") ?? false)
  );
}

interface FactsProps {
  readonly run: RunDetail;
  readonly workedMs: number | undefined;
  readonly takeovers: number;
}

function Facts({ run, workedMs, takeovers }: FactsProps): JSX.Element {
  return (
    <div class="meta">
      <span>
        definition <b>{`${run.definition} v${run.version}`}</b>
      </span>
      <span>
        started <b>{longTime(run.createdAt, now.peek())}</b>
      </span>
      <span>
        {run.endedAt === undefined ? "age" : "took"}{" "}
        <b>
          <Age from={run.createdAt} to={run.endedAt} />
        </b>
      </span>
      {workedMs !== undefined && (
        <span>
          working <b>{duration(workedMs)}</b>
        </span>
      )}
      <span>
        journal{" "}
        <a href={hrefWith({ view: "journal" })}>
          <b>{plural(run.entries, "entry", "entries")}</b>
        </a>
      </span>
      {takeovers > 0 && (
        <span>
          takeovers <b>{takeovers}</b>
        </span>
      )}
      {run.generation > 0 && (
        <span>
          generation <b>{run.generation}</b>
        </span>
      )}
      {run.worker !== undefined && (
        <span>
          worker <b>{run.worker.name ?? run.worker.worker}</b>
          {!run.worker.alive && " (lost)"}
        </span>
      )}
      {run.forkOf !== undefined && (
        <span>
          fork of{" "}
          <a class="link mono" href={href(runPath(run.forkOf.run))}>
            {run.forkOf.run}
          </a>{" "}
          at {run.forkOf.at}
        </span>
      )}
      {run.tags.length > 0 && (
        <span>
          tags
          {run.tags.map((tag) => (
            <a key={tag} class="tag" href={href("/", { tag, status: "all" })}>
              {tag}
            </a>
          ))}
        </span>
      )}
      <BudgetFacts {...run} />
      <span title={run.digest}>
        digest <b class="mono">{run.digest.replace(/^sha256:/, "").slice(0, 8)}</b>
      </span>
      <span>
        <Icon name="shield" />
        <a class="nowrap" href={href("/proof", { run: run.id })}>
          verify
        </a>
      </span>
    </div>
  );
}

function LazyView({ view, run }: { readonly view: RunView; readonly run: RunDetail }): JSX.Element {
  const [View, failure] = usePart(view);
  if (View === undefined) return failure ?? <section class="card tl-empty" aria-busy="true" />;
  return <View run={run} />;
}

/** Input and output of the run. Closed at first: the steps are what people look for. */
function Payloads({ run }: { readonly run: RunDetail }): JSX.Element | null {
  const isHidden = run.hidden !== undefined;
  if (!isHidden && run.input === undefined && run.output === undefined) return null;
  return (
    <details class="card payloads">
      <summary>Input and output of the run</summary>
      <div class="two">
        <div>
          <h3>Input</h3>
          {isHidden ? (
            <Hidden />
          ) : run.input === undefined ? (
            <span class="muted">none</span>
          ) : (
            <Json value={run.input} label="Input of the run" />
          )}
        </div>
        <div>
          <h3>Output</h3>
          {isHidden ? (
            <Hidden />
          ) : run.output === undefined ? (
            <span class="muted">{run.endedAt === undefined ? "not yet" : "none"}</span>
          ) : (
            <Json value={run.output} label="Output of the run" />
          )}
        </div>
      </div>
    </details>
  );
}

function Children({ run }: { readonly run: RunDetail }): JSX.Element {
  const children = useResource<{ readonly items: readonly RunSummary[]; readonly next?: string }>(
    at`/v1/runs/${run.id}/children`,
    {
      query: { limit: 20 },
      when: ({ kind }) => kind === "run",
      every: 1000,
    },
  );
  return (
    <section class="card kids" aria-label="Children">
      <header>
        <h2>Children</h2>
        <span class="muted">{count(run.children)}</span>
        <span class="grow" />
        <a class="link" href={href("/", { parent: run.id, status: "all" })}>
          All in the list
        </a>
      </header>
      <div class="scroll-x">
        <table class="tbl tight">
          <thead>
            <tr>
              <th>Status</th>
              <th>Run</th>
              <th>Definition</th>
              <th class="num">Started</th>
              <th class="num">Duration</th>
            </tr>
          </thead>
          <tbody>
            {children.data?.items.map((child) => (
              <tr key={child.id}>
                <td>
                  <Status status={child.status} />
                </td>
                <td>
                  <a class="link mono" href={href(runPath(child.id))}>
                    {child.id}
                  </a>
                </td>
                <td>{child.definition}</td>
                <td class="num">{shortTime(child.createdAt, now.peek())}</td>
                <td class="num">
                  <Age from={child.createdAt} to={child.endedAt} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
