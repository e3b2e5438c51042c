// Step panel: one step of a run: input, output, error, attempts, entries of the journal, log lines.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { JournalEntryBody, LogLineBody, RunDetail } from "../../../../src/contract/run.ts";
import type { TimelineRow } from "../../../../src/contract/timeline.ts";
import { now } from "../../clock.ts";
import { Button } from "../../components/controls.tsx";
import { Hidden, Json } from "../../components/json.tsx";
import { Status, StatusGlyph } from "../../components/status.tsx";
import { exactDuration } from "../../format.ts";
import { href, hrefWith, param, runPath, setQuery } from "../../router.ts";
import { readStepEntries } from "./journal-data.ts";
import { Entry } from "./journal-entry.tsx";
import { LogLines, useLogLines } from "./log-lines.tsx";
import { StepActions } from "./step-actions.tsx";
import { executionsOf, lengthOf, type Execution } from "./step-row.ts";
import { ErrorBox } from "./thrown-error.tsx";

interface StepPanelProps {
  readonly run: RunDetail;
  readonly row: TimelineRow;
}

interface StepEntries {
  readonly entries: readonly JournalEntryBody[];
  readonly complete: boolean;
}

function useStepEntries(run: RunDetail, command: string): StepEntries | undefined {
  const found = useSignal<(StepEntries & { readonly command: string }) | undefined>(undefined);
  useEffect(() => {
    const reading = new AbortController();
    readStepEntries(run.id, command, reading.signal).then(
      (entries) => (found.value = { ...entries, command }),
      () => {},
    );
    return () => reading.abort();
  }, [run.id, command, run.entries]);
  return found.value?.command === command ? found.value : undefined;
}

export function StepPanel({ run, row }: StepPanelProps): JSX.Element {
  const entries = useStepEntries(run, row.command);
  const logs = useLogLines(run, row.command);
  const tab = param("tab");
  const lines = logs.data?.items ?? [];
  return (
    <aside class="card panel" aria-label={`Step ${row.name}`}>
      <header>
        <StatusGlyph status={row.state} label={row.state} />
        <h2 class="cut" title={row.name}>
          {row.name}
        </h2>
        <span class="muted mono nowrap">{row.command}</span>
        <span class="grow" />
        <StepActions run={run} row={row} />
        <Button
          kind="ghost"
          small
          icon="x"
          label="Close the panel"
          onClick={() => setQuery({ step: "", tab: "", attempt: "" }, { push: true })}
        />
      </header>
      <nav class="tabs" aria-label="Step">
        <a href={hrefWith({ tab: "" })} aria-current={tab === "" ? "true" : undefined}>
          Overview
        </a>
        <a href={hrefWith({ tab: "entries" })} aria-current={tab === "entries" ? "true" : undefined}>
          Entries {entries?.entries.length ?? ""}
        </a>
        <a href={hrefWith({ tab: "logs" })} aria-current={tab === "logs" ? "true" : undefined}>
          Logs {lines.length > 0 && lines.length}
        </a>
      </nav>
      {tab === "entries" ? (
        <section>
          <ol class="journal narrow">
            {entries?.entries.map((entry) => (
              <Entry key={entry.seq} entry={entry} />
            ))}
          </ol>
          {entries?.complete === false && (
            <p class="muted">Only the first 5,000 entries of the journal were searched.</p>
          )}
        </section>
      ) : tab === "logs" ? (
        <LogLines lines={lines} covers={logs.data?.covers} />
      ) : (
        <Overview run={run} row={row} entries={entries?.entries ?? []} lines={lines} />
      )}
    </aside>
  );
}

interface OverviewProps extends StepPanelProps {
  readonly entries: readonly JournalEntryBody[];
  readonly lines: readonly LogLineBody[];
}

const field = (
  entries: readonly JournalEntryBody[],
  ...names: readonly string[]
): { readonly value: unknown } | undefined => {
  for (const entry of entries) {
    if (typeof entry.data !== "object" || entry.data === null) continue;
    for (const name of names)
      if (Object.hasOwn(entry.data, name)) return { value: (entry.data as Record<string, unknown>)[name] };
  }
  return undefined;
};

function Overview({ row, entries, lines }: OverviewProps): JSX.Element {
  const executions = executionsOf(row);
  const chosen = param("attempt") === "" ? undefined : executions[Number(param("attempt")) - 1];
  const failed = chosen === undefined ? executions.findLast(({ span }) => span.error !== undefined) : chosen;
  const input = field(entries, "input", "args", "show", "payload");
  const output = field([...entries].reverse(), "result", "output", "value");
  const isHidden = entries.some(({ hidden }) => hidden !== undefined);
  const waitsMs = field(entries, "ms");
  return (
    <>
      {(input !== undefined || output !== undefined || isHidden) && (
        <section>
          <div class="two">
            <div>
              <h3>Input</h3>
              {isHidden ? (
                <Hidden />
              ) : input === undefined ? (
                <span class="muted">none</span>
              ) : (
                <Json value={input.value} label="Input" />
              )}
            </div>
            <div>
              <h3>Output</h3>
              {isHidden ? (
                <Hidden />
              ) : output === undefined ? (
                <span class="muted">{row.state === "completed" ? "none" : "not yet"}</span>
              ) : (
                <Json value={output.value} label="Output" />
              )}
            </div>
          </div>
        </section>
      )}
      {failed?.span.error !== undefined && (
        <section>
          <h3>
            Error of attempt {failed.attempt}
            <span class="grow" />
            {failed.backoff !== undefined && (
              <span>retried after {exactDuration(lengthOf(failed.backoff, now.value))}</span>
            )}
          </h3>
          <ErrorBox error={failed.span.error} />
        </section>
      )}
      {executions.length > 0 && <Attempts executions={executions} />}
      <section>
        <dl class="kv facts-list">
          {row.idempotencyKey !== undefined && (
            <>
              <dt>Idempotency key</dt>
              <dd class="mono cut" title={row.idempotencyKey}>
                {row.idempotencyKey.replace(/^sha256:/, "").slice(0, 16)}…
                {executions.length > 1 && <span class="muted"> the same in all {executions.length}</span>}
              </dd>
            </>
          )}
          {row.child !== undefined && (
            <>
              <dt>Child run</dt>
              <dd>
                <a class="link mono" href={href(runPath(row.child))}>
                  {row.child}
                </a>
              </dd>
            </>
          )}
          {waitsMs !== undefined && typeof waitsMs.value === "number" && (
            <>
              <dt>Sleeps</dt>
              <dd>{exactDuration(waitsMs.value)}</dd>
            </>
          )}
          {row.by !== undefined && (
            <>
              <dt>Settled by</dt>
              <dd>
                {row.by}
                {row.reason !== undefined && `: ${row.reason}`}
              </dd>
            </>
          )}
          <dt>Kind</dt>
          <dd>{row.kind}</dd>
        </dl>
      </section>
      {lines.length > 0 && <LogLines lines={lines.slice(0, 8)} covers={undefined} title="Logs" />}
    </>
  );
}

const OUTCOMES: Readonly<Record<string, { readonly status: string; readonly word: string }>> = {
  work: { status: "completed", word: "Done" },
  failed: { status: "failed", word: "Failed" },
  lost: { status: "lost", word: "Lost" },
  returned: { status: "returned", word: "Given back" },
  running: { status: "running", word: "Running" },
};

function Attempts({ executions }: { readonly executions: readonly Execution[] }): JSX.Element {
  return (
    <section>
      <h3>Attempts</h3>
      <div class="scroll-x">
        <table class="tbl tight attempts">
          <thead>
            <tr>
              <th>Attempt</th>
              <th>Execution</th>
              <th>Worker</th>
              <th class="num">Queued</th>
              <th class="num">Took</th>
              <th>Outcome</th>
            </tr>
          </thead>
          <tbody>
            {executions.map(({ span, queued, attempt }, index) => (
              <tr key={index} class={param("attempt") === String(index + 1) ? "on" : ""}>
                <td>
                  <a class="link" href={hrefWith({ attempt: String(index + 1) })}>
                    {attempt}
                  </a>
                </td>
                <td>{span.execution ?? index + 1}</td>
                <td class="cut">{span.worker ?? "—"}</td>
                <td class="num">{queued === undefined ? "—" : exactDuration(lengthOf(queued, now.value))}</td>
                <td class="num">{exactDuration(lengthOf(span, now.value))}</td>
                <td>
                  <Status
                    status={OUTCOMES[span.kind]?.status ?? "queued"}
                    word={OUTCOMES[span.kind]?.word ?? span.kind}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
