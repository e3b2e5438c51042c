// Timeline: the steps of a run on one time scale, with the workers that held it and what a crash cost.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Timeline, TimelineRow } from "../../../../src/contract/timeline.ts";
import { at, get } from "../../api.ts";
import { now } from "../../clock.ts";
import { Meter } from "../../components/charts.tsx";
import { Button } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { StatusGlyph, statusWord } from "../../components/status.tsx";
import { count, duration } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { href, param, runPath, setQuery } from "../../router.ts";
import { PromiseButtons } from "./promise-actions.tsx";
import { Bar, BarText, between, percentOf, RowBars } from "./gantt.tsx";
import { executionsOf, hasTrouble, type Execution } from "./step-row.ts";
import { StepTable } from "./step-table.tsx";
import { shortFrame } from "./thrown-error.tsx";
import { Takeovers } from "./takeovers.tsx";
import { createTimeScale, type TimeScale } from "./time-scale.ts";
import { useTimeline } from "./timeline-data.ts";
import { ViewSwitch } from "./view-switch.tsx";
import type { RunViewProps } from "./views.ts";

/** More rows than this are drawn only where they can be seen. */
const ALL_DRAWN = 200;
const ROW_HEIGHT = 34;

export default function TimelineView({ run }: RunViewProps): JSX.Element {
  const timeline = useTimeline(run);
  const further = useSignal<readonly TimelineRow[]>([]);
  const next = useSignal<string | undefined>(undefined);
  useEffect(() => {
    if (further.peek().length === 0) next.value = timeline.data?.next;
  }, [timeline.data]);
  const onlyFailed = param("failed") !== "";
  const isFolded = param("fold") !== "off";
  const isTable = param("as") === "table";
  const rows = useMemo(() => {
    const all = [...(timeline.data?.rows ?? []), ...further.value];
    return onlyFailed ? all.filter(hasTrouble) : all;
  }, [timeline.data, further.value, onlyFailed]);
  const toggleFailed = (): void => setQuery({ failed: !onlyFailed });
  const toggleFold = (): void => setQuery({ fold: isFolded ? "off" : "" });
  useStepKeys(rows);
  useKeys("Timeline", [
    { keys: "e", label: "Failed only", run: toggleFailed },
    { keys: "z", label: "Fold idle time", run: toggleFold },
  ]);
  const loadMore = async (): Promise<void> => {
    const page = await get<Timeline>(at`/v1/runs/${run.id}/timeline`, { query: { limit: 1000, after: next.value } });
    further.value = [...further.value, ...page.rows];
    next.value = page.next;
  };
  return (
    <>
      <section class="card tl" aria-label="Timeline">
        <header>
          <h2>Timeline</h2>
          <span class="grow" />
          <ViewSwitch run={run} />
          <Button small pressed={onlyFailed} keys="e" onClick={toggleFailed}>
            Failed only
          </Button>
          {!isTable && (
            <Button small class="only-l" pressed={isFolded} keys="z" onClick={toggleFold}>
              Fold idle
            </Button>
          )}
          <Button small pressed={isTable} class="only-l" onClick={() => setQuery({ as: isTable ? "" : "table" })}>
            Table
          </Button>
        </header>
        {timeline.data === undefined ? (
          <p class="pad muted">{timeline.problem?.detail ?? "Loading …"}</p>
        ) : isTable ? (
          <StepTable rows={rows} />
        ) : (
          <Chart
            run={run}
            timeline={timeline.data}
            rows={rows}
            isFolded={isFolded}
            openAll={onlyFailed && rows.length <= 20}
          />
        )}
        {next.value !== undefined && (
          <div class="more">
            <Button small onClick={loadMore}>
              Load more steps
            </Button>
          </div>
        )}
      </section>
      {timeline.data !== undefined && <Takeovers timeline={timeline.data} />}
    </>
  );
}

/** ↑ and ↓ move between steps, ← and → between attempts of one. */
function useStepKeys(rows: readonly TimelineRow[]): void {
  const move = (by: number): void => {
    const index = rows.findIndex(({ command }) => command === param("step"));
    const row =
      rows[Math.min(rows.length - 1, Math.max(0, index === -1 ? (by > 0 ? 0 : rows.length - 1) : index + by))];
    if (row === undefined) return;
    setQuery({ step: row.command, attempt: "" });
    document.querySelector(`[data-step="${CSS.escape(row.command)}"]`)?.scrollIntoView({ block: "nearest" });
  };
  const attempt = (by: number): void => {
    const row = rows.find(({ command }) => command === param("step"));
    if (row === undefined) return;
    const last = executionsOf(row).length;
    const shown = param("attempt") === "" ? last : Number(param("attempt"));
    setQuery({ attempt: String(Math.min(last, Math.max(1, shown + by))) });
  };
  useKeys("Steps", [
    { keys: "ArrowDown", label: "Next step", run: () => move(1) },
    { keys: "ArrowUp", label: "Previous step", run: () => move(-1) },
    { keys: "j", label: "Next step", run: () => move(1), hidden: true },
    { keys: "k", label: "Previous step", run: () => move(-1), hidden: true },
    { keys: "ArrowRight", label: "Next attempt", run: () => attempt(1), when: () => param("step") !== "" },
    { keys: "ArrowLeft", label: "Previous attempt", run: () => attempt(-1), when: () => param("step") !== "" },
    { keys: "Enter", label: "Open the panel of the step", run: () => move(0), when: () => rows.length > 0 },
  ]);
}

interface ChartProps extends RunViewProps {
  readonly timeline: Timeline;
  readonly rows: readonly TimelineRow[];
  readonly isFolded: boolean;
  readonly openAll: boolean;
}

function Chart({ run, timeline, rows, isFolded, openAll }: ChartProps): JSX.Element {
  // A live run moves the scale with the clock; one that has ended keeps it.
  const time = timeline.endedAt === undefined ? Math.max(now.value, Date.parse(timeline.now)) : 0;
  const scale = useMemo(() => createTimeScale(timeline, time, isFolded), [timeline, time, isFolded]);
  const folded = scale.folds.reduce((sum, { from, to }) => sum + to - from, 0);
  return (
    <>
      <div class="g" role="group" aria-label="Steps on a time scale; the button Table shows the same as a table">
        <div class="axis" aria-hidden="true">
          <span />
          <div class="ax">
            {scale.ticks.map((tick, index) => (
              <span
                key={index}
                class={`${tick.kind === "now" ? "n" : tick.kind} ${tick.kind === "time" && index % 2 === 1 ? "minor" : ""}`}
                style={tick.kind === "last" ? { right: percentOf(1 - tick.at) } : { left: percentOf(tick.at) }}
              >
                {tick.label}
              </span>
            ))}
          </div>
        </div>
        <div class="over" aria-hidden="true">
          {scale.folds.map((fold) => (
            <span key={fold.from} class="fold" style={between(scale.place(fold.from), scale.place(fold.to))} />
          ))}
          {timeline.takeovers.map((one) => (
            <>
              <span class="take" style={{ left: percentOf(scale.place(Date.parse(one.lostAt))) }} />
              <span class="take b2" style={{ left: percentOf(scale.place(Date.parse(one.takenAt))) }} />
            </>
          ))}
          {scale.nowAt !== undefined && <span class="nowl" style={{ left: percentOf(scale.nowAt) }} />}
        </div>
        {timeline.takeovers.length > 0 && <Flags timeline={timeline} scale={scale} />}
        {timeline.holdings.length > 0 && <HeldBy timeline={timeline} scale={scale} />}
        {rows.length === 0 && (
          <p class="pad muted">{param("failed") === "" ? "No step is committed yet." : "No step failed."}</p>
        )}
        <Rows run={run} rows={rows} scale={scale} openAll={openAll} />
      </div>
      <Legend folded={folded} />
    </>
  );
}

interface RowsProps extends RunViewProps {
  readonly rows: readonly TimelineRow[];
  readonly scale: TimeScale;
  readonly openAll: boolean;
}

/** All rows of a short run; of a long one those that can be seen, in a box that scrolls. */
function Rows({ run, rows, scale, openAll }: RowsProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const top = useSignal(0);
  const step = param("step");
  if (rows.length <= ALL_DRAWN) {
    return (
      <>
        {rows.map((row) => (
          <StepRow key={row.command} run={run} row={row} scale={scale} isOpen={openAll || row.command === step} />
        ))}
      </>
    );
  }
  const first = Math.max(0, Math.floor(top.value / ROW_HEIGHT) - 10);
  const shown = rows.slice(first, first + 60);
  return (
    <div
      class="g-scroll"
      ref={box}
      tabIndex={0}
      role="region"
      aria-label={`${count(rows.length)} steps`}
      onScroll={(event) => (top.value = event.currentTarget.scrollTop)}
    >
      <div style={{ height: `${first * ROW_HEIGHT}px` }} />
      {shown.map((row) => (
        <StepRow key={row.command} run={run} row={row} scale={scale} isOpen={row.command === step} />
      ))}
      <div style={{ height: `${Math.max(0, rows.length - first - shown.length) * ROW_HEIGHT}px` }} />
    </div>
  );
}

const STATES: Readonly<Record<TimelineRow["state"], string>> = {
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  timed_out: "timed_out",
  open: "waiting",
  running: "running",
  queued: "queued",
  skipped: "skipped",
};

interface StepRowProps extends RunViewProps {
  readonly row: TimelineRow;
  readonly scale: TimeScale;
  readonly isOpen: boolean;
}

function StepRow({ run, row, scale, isOpen }: StepRowProps): JSX.Element {
  const isSelected = param("step") === row.command;
  const executions = isOpen ? executionsOf(row) : [];
  const isPromise = row.kind === "promise" && row.state === "open";
  const promise = isPromise
    ? run.openPromises.find((one) => one.name === row.name && (one.key ?? "") === (row.key ?? ""))
    : undefined;
  const { progress } = row;
  return (
    <>
      <div
        class={`gr ${isSelected ? "sel" : ""} ${promise === undefined ? "" : "open"}`}
        data-step={row.command}
        aria-current={isSelected ? "true" : undefined}
        onClick={(event) => {
          if ((event.target as Element).closest("a, .btn") === null)
            setQuery({ step: row.command, attempt: "" }, { push: true });
        }}
      >
        <div class="gl">
          <StatusGlyph status={STATES[row.state]} label={statusWord(STATES[row.state])} />
          <button
            type="button"
            class="cut step"
            aria-expanded={isOpen}
            title={row.name}
            onClick={(event) => {
              event.stopPropagation();
              setQuery({ step: isSelected ? "" : row.command, attempt: "" }, { push: true });
            }}
          >
            {row.name}
            {row.key !== undefined && <span class="muted"> {row.key}</span>}
          </button>
          <span class="c" title={row.command}>
            {row.command}
          </span>
        </div>
        <div class="gb">
          <RowBars row={row} scale={scale}>
            {progress !== undefined ? (
              <span class="t spread">
                <Meter
                  value={progress.done}
                  max={progress.total}
                  failed={progress.failed}
                  width={140}
                  label={`${count(progress.done)} of ${count(progress.total)}`}
                />
                <span>
                  {count(progress.done)} of {count(progress.total)}
                  {progress.failed > 0 && ` · ${count(progress.failed)} failed`}
                  {progress.running > 0 && ` · ${count(progress.running)} running`}
                </span>
              </span>
            ) : row.child !== undefined ? (
              <BarText from={0} to={scale.place(Date.parse(row.spans.at(-1)?.to ?? new Date(scale.end).toISOString()))}>
                <a class="link" href={href(runPath(row.child))}>
                  {row.child}
                </a>
              </BarText>
            ) : promise !== undefined ? (
              <span class="t promise" style={besideOpen(scale.place(Date.parse(promise.createdAt)))}>
                <span class="only-l">open for {duration(scale.end - Date.parse(promise.createdAt))}</span>
                <PromiseButtons run={run} promise={promise} small />
              </span>
            ) : undefined}
          </RowBars>
        </div>
      </div>
      {(executions.length > 1 || executions.some(({ span }) => span.error !== undefined)) &&
        executions.map((execution, index) => (
          <AttemptRow key={index} execution={execution} scale={scale} number={index + 1} />
        ))}
    </>
  );
}

/** Left of the bar of an open promise; over it where there is no room. */
function besideOpen(from: number): { readonly left: string } | { readonly right: string } {
  return from > 0.42 ? { right: percentOf(1 - from) } : { left: percentOf(from + 0.01) };
}

interface AttemptRowProps {
  readonly execution: Execution;
  readonly scale: TimeScale;
  readonly number: number;
}

function AttemptRow({ execution, scale, number }: AttemptRowProps): JSX.Element {
  const { span, queued, attempt } = execution;
  const frame = span.error?.frames?.[0];
  const from = scale.place(Date.parse(span.from));
  const to = scale.place(span.to === undefined ? scale.end : Date.parse(span.to));
  const isChosen = param("attempt") === String(number);
  return (
    <div class={`gr sub ${frame === undefined ? "" : "two-l"} ${isChosen ? "chosen" : ""}`}>
      <div class="gl">
        <span class="cut">
          attempt {attempt}
          {span.worker !== undefined && ` · ${span.worker}`}
        </span>
      </div>
      <div class="gb">
        {queued !== undefined && <Bar span={queued} scale={scale} />}
        <Bar span={span} scale={scale} />
        {span.error !== undefined ? (
          <BarText from={from} to={to} bad letters={span.error.name.length + span.error.message.length + 2}>
            <span>
              {span.error.name}: {span.error.message}
            </span>
            {frame !== undefined && (
              <>
                <br />
                <span>
                  <code title={frame.trim()}>{shortFrame(frame)}</code>
                </span>
              </>
            )}
          </BarText>
        ) : span.kind === "lost" ? (
          <BarText from={from} to={to} bad letters={50}>
            <span>execution lost{span.worker !== undefined && ` with ${span.worker}`}, nothing committed</span>
          </BarText>
        ) : (span.execution ?? 1) > 1 ? (
          <BarText from={from} to={to} letters={36}>
            <span class="only-l">execution {span.execution}, same idempotency key</span>
          </BarText>
        ) : null}
      </div>
    </div>
  );
}

function HeldBy({ timeline, scale }: { readonly timeline: Timeline; readonly scale: TimeScale }): JSX.Element {
  const { holdings } = timeline;
  const last = holdings.at(-1)!;
  const restFrom = last.to === undefined ? 1 : scale.place(Date.parse(last.to));
  const restTo = scale.nowAt ?? restFrom;
  return (
    <div class="gr held">
      <div class="gl">
        <Icon name="person" class="kind" />
        <b class="soft">Held by</b>
      </div>
      <div class="gb">
        {holdings.map((one, index) => {
          const from = scale.place(Date.parse(one.from));
          const to = scale.place(one.to === undefined ? scale.end : Date.parse(one.to));
          const next = holdings[index + 1];
          const gapTo =
            one.lost && one.to !== undefined ? scale.place(next === undefined ? scale.end : Date.parse(next.from)) : to;
          return (
            <>
              <i class="b wk" style={between(from, to)} title={one.worker}>
                {to - from > 0.06 && one.worker}
              </i>
              {one.lost && gapTo > to && (
                <i class="b lease hatch" style={between(to, gapTo)}>
                  {gapTo - to > 0.2 && <span class="only-l">lease expires</span>}
                </i>
              )}
            </>
          );
        })}
        {last.to !== undefined && !last.lost && restTo - restFrom > 0.02 && (
          <i class="b rest" style={between(restFrom + 0.005, restTo)}>
            {restTo - restFrom > 0.12 && <span class="only-l">no worker needed</span>}
          </i>
        )}
      </div>
    </div>
  );
}

/** A flag takes almost half of the width of a phone: from here on it points to the left. */
const PHONE_HALF = 0.52;

function Flags({ timeline, scale }: { readonly timeline: Timeline; readonly scale: TimeScale }): JSX.Element {
  const { takeovers } = timeline;
  const last = takeovers.at(-1)!;
  const lostAt = scale.place(Date.parse(last.lostAt));
  const takenAt = scale.place(Date.parse(last.takenAt));
  // Where both do not fit side by side, the first flag points to the left.
  const isNarrow = takenAt - lostAt < 0.2;
  const isRight = takenAt > 0.8;
  return (
    <div class={`gr tk ${isNarrow && (lostAt <= 0.2 || isRight) ? "high" : ""}`}>
      <div class="gl">
        <span class="muted">{takeovers.length === 1 ? "Crash survived" : `${takeovers.length} crashes survived`}</span>
      </div>
      <div class="gb">
        <span
          class={`flag lostf ${isNarrow && lostAt > 0.2 ? "left" : ""} ${lostAt > PHONE_HALF ? "left-s" : ""}`}
          style={{ "--at": percentOf(lostAt) }}
        >
          worker {last.from ?? ""} lost
        </span>
        <span
          class={`flag mv ${isRight ? "left" : ""} ${takenAt > PHONE_HALF ? "left-s" : ""} ${isNarrow && (lostAt <= 0.2 || isRight) ? "below" : ""}`}
          style={{ "--at": percentOf(takenAt) }}
        >
          {last.to} took over
        </span>
      </div>
    </div>
  );
}

function Legend({ folded }: { readonly folded: number }): JSX.Element {
  return (
    <div class="legend" aria-hidden="true">
      <span>
        <i class="b wait" />
        queue wait
      </span>
      <span>
        <i class="b s-completed" />
        execution
      </span>
      <span>
        <i class="b s-failed" />
        failed attempt
      </span>
      <span>
        <i class="b lost hatch" />
        lost execution
      </span>
      <span>
        <i class="b back" />
        backoff
      </span>
      <span>
        <i class="b s-waiting pend" />
        open wait
      </span>
      {folded > 0 && (
        <span>
          <i class="b folded" />
          {duration(folded)} idle, folded
        </span>
      )}
    </div>
  );
}
