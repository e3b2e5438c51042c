// Schedules: when each one starts its next run, what the last one did, and why one does not fire.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ScheduleBody } from "../../../../src/contract/queue.ts";
import type { RunSummary } from "../../../../src/contract/run.ts";
import { at, post } from "../../api.ts";
import { command } from "../../cli.ts";
import { now } from "../../clock.ts";
import { Button, Command, copyText, NowLine, Prose } from "../../components/controls.tsx";
import { ask, Dialog } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { Status } from "../../components/status.tsx";
import { toast } from "../../components/toast.tsx";
import { capital, duration, longTime, plural, tickingDuration } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { usePolling } from "../../polling.ts";
import { useResource } from "../../resource.ts";
import { href, param, runPath, setQuery } from "../../router.ts";
import { can } from "../../site.ts";
import { useTitle } from "../../title.ts";
import "./schedules.css";

interface Items<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

/** A schedule is late when its planned time passed by more than this. */
const LATE_MS = 5000;

export default function SchedulesPage(): JSX.Element {
  useTitle("Schedules");
  const { data, problem, reload } = useResource<Items<ScheduleBody>>("/v1/schedules", {
    query: { limit: 500 },
    when: ({ kind }) => kind === "schedule" || kind === "run",
    every: 1000,
  });
  usePolling(reload, 5000);
  const [filling, setFilling] = useState<ScheduleBody | undefined>(undefined);
  const schedules = data?.items ?? [];
  const sel = param("sel") || schedules[0]?.name || "";
  const current = schedules.find(({ name }) => name === sel);
  const move = (by: number): void => {
    const next =
      schedules[Math.max(0, Math.min(schedules.length - 1, schedules.findIndex(({ name }) => name === sel) + by))];
    if (next !== undefined) setQuery({ sel: next.name });
  };
  const mayAct = (): boolean => can("operator") && current !== undefined;
  const done = (): void => void reload();
  useKeys("Schedules", [
    { keys: "j", label: "next schedule", run: () => move(1) },
    { keys: "k", label: "previous schedule", run: () => move(-1) },
    { keys: "t", label: "start one run now", run: () => askTrigger(current!, done), when: mayAct },
    { keys: "p", label: "pause or resume", run: () => askPause(current!, done), when: mayAct },
    { keys: "b", label: "backfill", run: () => setFilling(current), when: mayAct },
    { keys: "c", label: "copy as CLI", run: () => void copyText(command("schedule", "list")) },
  ]);
  return (
    <>
      <div class="head">
        <h1>Schedules</h1>
        <span class="grow" />
        <Button icon="term" keys="c" onClick={() => copyText(command("schedule", "list"))}>
          Copy as CLI
        </Button>
      </div>
      {data === undefined ? (
        problem === undefined ? (
          <p class="muted">Loading …</p>
        ) : (
          <p class="bad">{problem.detail}</p>
        )
      ) : schedules.length === 0 ? (
        <Nothing />
      ) : (
        <>
          <FirstLine schedules={schedules} />
          <section class="card" aria-label="Schedules">
            <div class="scroll-x" tabIndex={0} role="region" aria-label="Schedules, table">
              <table class="tbl sch-tbl">
                <thead>
                  <tr>
                    <th>Schedule</th>
                    <th>When</th>
                    <th>Next</th>
                    <th>Last run</th>
                    <th>Overlap, catch-up</th>
                    <th class="num">
                      <span class="vh">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {schedules.map((schedule) => (
                    <ScheduleRow
                      key={schedule.name}
                      schedule={schedule}
                      isCurrent={schedule.name === sel}
                      onBackfill={() => setFilling(schedule)}
                      onChanged={done}
                    />
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        </>
      )}
      {filling !== undefined && <Backfill schedule={filling} onClose={() => setFilling(undefined)} onDone={done} />}
      <KeyRow
        keys={[
          ["J K", "move"],
          ["T", "start one now"],
          ["P", "pause or resume"],
          ["B", "backfill"],
          ["C", "copy as CLI"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

function isLate({ lagMs }: ScheduleBody): boolean {
  return (lagMs ?? 0) > LATE_MS;
}

function FirstLine({ schedules }: { readonly schedules: readonly ScheduleBody[] }): JSX.Element {
  const late = schedules.filter(isLate).toSorted((a, b) => (b.lagMs ?? 0) - (a.lagMs ?? 0));
  const [worst] = late;
  if (worst !== undefined) {
    const reason = worst.reasons?.[0];
    return (
      <NowLine
        status="failed"
        lead={
          late.length === 1 ? `${worst.name} is ${duration(worst.lagMs!)} late.` : `${late.length} schedules are late.`
        }
        command={reason?.next[0] ?? "reprise doctor"}
      >
        {reason === undefined ? "No live worker fires schedules." : <Prose text={reason.text} />}
      </NowLine>
    );
  }
  const failed = schedules.find(({ lastStatus }) => lastStatus === "failed");
  if (failed?.lastRun !== undefined)
    return (
      <NowLine
        status="failed"
        lead={`The last run of ${failed.name} failed.`}
        command={command("show", failed.lastRun)}
      >
        The schedule continues with its next time.
      </NowLine>
    );
  const next = schedules
    .filter(({ nextAt, paused }) => nextAt !== undefined && !paused)
    .toSorted((a, b) => Date.parse(a.nextAt!) - Date.parse(b.nextAt!))[0];
  if (next === undefined)
    return (
      <NowLine
        status="paused"
        lead="No schedule will fire."
        {...(schedules[0]?.paused === true && { command: command("schedule", "resume", schedules[0].name) })}
      >
        {schedules.every(({ paused }) => paused) ? "All are paused." : "None has a further time."}
      </NowLine>
    );
  return (
    <NowLine status="completed" lead="All schedules are on time.">
      Next: <code>{next.name}</code> in {tickingDuration(Date.parse(next.nextAt!) - now.value)}.
    </NowLine>
  );
}

function askPause({ name, paused }: ScheduleBody, onChanged: () => void): void {
  const verb = paused ? "resume" : "pause";
  ask({
    title: `${capital(verb)} ${name}`,
    text: paused
      ? "It continues with its next planned time. Times that passed meanwhile are not made up for: use backfill."
      : "It starts no more runs. Runs that it started continue.",
    confirm: capital(verb),
    reason: true,
    command: () => command("schedule", verb, name),
    run: async (reason) => {
      await post(at`/v1/schedules/${name}/${verb}`, reason === "" ? {} : { reason });
      onChanged();
    },
  });
}

function askTrigger({ name, definition }: ScheduleBody, onChanged: () => void): void {
  ask({
    title: `Start one run of ${name} now`,
    text: `Starts ${definition} with the input of the schedule, in addition to the planned runs and regardless of overlap.`,
    confirm: "Start",
    reason: true,
    command: () => command("schedule", "trigger", name),
    run: async (reason) => {
      const run = await post<RunSummary>(at`/v1/schedules/${name}/trigger`, reason === "" ? {} : { reason });
      toast({ tone: "good", text: `Started ${run.id}`, command: command("show", run.id) });
      onChanged();
    },
  });
}

interface RowProps {
  readonly schedule: ScheduleBody;
  readonly isCurrent: boolean;
  readonly onBackfill: () => void;
  readonly onChanged: () => void;
}

function ScheduleRow({ schedule, isCurrent, onBackfill, onChanged }: RowProps): JSX.Element {
  const { name, definition, cron, everyMs, timeZone, paused, nextAt, lastAt, lastRun, lastStatus } = schedule;
  const reason = schedule.reasons?.[0];
  return (
    <>
      <tr class={isCurrent ? "cur" : ""}>
        <td class="any">
          <b class="strong">{name}</b>
          <span class="sub">{definition}</span>
        </td>
        <td>
          {cron !== undefined ? <code>{cron}</code> : <>every {duration(everyMs ?? 0)}</>}
          <span class="sub">
            {[
              ...(cron === undefined ? [] : [timeZone ?? "UTC"]),
              ...(schedule.jitterMs > 0 ? [`up to ${duration(schedule.jitterMs)} later`] : []),
            ].join(" · ")}
          </span>
        </td>
        <td>
          {paused ? (
            <Status status="paused" word="Paused" />
          ) : nextAt === undefined ? (
            <span class="muted">no further time</span>
          ) : isLate(schedule) ? (
            <>
              <span class="hot">{duration(schedule.lagMs!)} late</span>
              <span class="sub">planned {longTime(nextAt, now.value)}</span>
            </>
          ) : (
            <>
              in {tickingDuration(Math.max(0, Date.parse(nextAt) - now.value))}
              <span class="sub">{longTime(nextAt, now.value)}</span>
            </>
          )}
        </td>
        <td class="any">
          {lastRun === undefined ? (
            <span class="muted">none yet</span>
          ) : (
            <>
              {lastStatus !== undefined && <Status status={lastStatus} />}{" "}
              <a class="mono link" href={href(runPath(lastRun))}>
                {lastRun}
              </a>
              {lastAt !== undefined && <span class="sub">{longTime(lastAt, now.value)}</span>}
            </>
          )}
        </td>
        <td class="soft">
          {schedule.overlap}, {schedule.catchUp}
          {schedule.waiting.length > 0 && <span class="sub">{plural(schedule.waiting.length, "time")} queued</span>}
        </td>
        <td class="num nowrap">
          {can("operator") && (
            <>
              <Button kind="ghost" small acts icon="play" onClick={() => askTrigger(schedule, onChanged)}>
                Trigger
              </Button>
              <Button
                kind="ghost"
                small
                acts
                icon={paused ? "play" : "pause"}
                onClick={() => askPause(schedule, onChanged)}
              >
                {paused ? "Resume" : "Pause"}
              </Button>
              <Button kind="ghost" small acts onClick={onBackfill}>
                Backfill…
              </Button>
            </>
          )}
        </td>
      </tr>
      {isLate(schedule) && reason !== undefined && (
        <tr class="late">
          <td colSpan={6}>
            <p class="why-late">
              <span>
                <Prose text={reason.text} />
              </span>
              {reason.next[0] !== undefined && <Command text={reason.next[0]} />}
            </p>
          </td>
        </tr>
      )}
    </>
  );
}

/** A time of an input of type datetime-local, which is local. */
const localTime = (ms: number): string => {
  const date = new Date(ms);
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};

function Backfill(props: {
  readonly schedule: ScheduleBody;
  readonly onClose: () => void;
  readonly onDone: () => void;
}): JSX.Element {
  const { schedule, onClose, onDone } = props;
  const [from, setFrom] = useState(localTime(now.peek() - 86_400_000));
  const [to, setTo] = useState(localTime(now.peek()));
  const [reason, setReason] = useState("");
  const isValid = from !== "" && to !== "" && from < to;
  const run = async (): Promise<void> => {
    const { count } = await post<{ count: number }>(at`/v1/schedules/${schedule.name}/backfill`, {
      from: new Date(from).toISOString(),
      to: new Date(to).toISOString(),
      ...(reason !== "" && { reason }),
    });
    toast({ tone: "good", text: `Started ${plural(count, "run")}.` });
    onDone();
    onClose();
  };
  return (
    <Dialog
      title={`Backfill ${schedule.name}`}
      onClose={onClose}
      footer={
        <>
          <code class="muted cut grow">
            {isValid &&
              command(
                "schedule",
                "backfill",
                schedule.name,
                "--from",
                new Date(from).toISOString(),
                "--to",
                new Date(to).toISOString(),
              )}
          </code>
          <Button onClick={onClose}>Start nothing</Button>
          <Button kind="primary" acts disabled={!isValid} onClick={run}>
            Start them
          </Button>
        </>
      }
    >
      <p class="soft">Starts every planned time of this period that has no run yet, at most 1,000.</p>
      <div class="two">
        <label class="field">
          <span class="eyebrow">From</span>
          <input type="datetime-local" value={from} onInput={(event) => setFrom(event.currentTarget.value)} />
        </label>
        <label class="field">
          <span class="eyebrow">Until before</span>
          <input type="datetime-local" value={to} onInput={(event) => setTo(event.currentTarget.value)} />
        </label>
      </div>
      <label class="field">
        <span class="eyebrow">Reason, for the log of the server</span>
        <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function Nothing(): JSX.Element {
  return (
    <section class="card">
      <div class="state">
        <Icon name="clock" />
        <h2>No schedule yet</h2>
        <p>A schedule starts runs by a cron pattern or an interval, once each, also if workers were down.</p>
        <Command text={'reprise schedule create nightly jobs.ts report --cron "0 2 * * *"'} />
      </div>
    </section>
  );
}
