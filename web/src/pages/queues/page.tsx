// Queues and workers: what waits, why, what executes it, and what no live worker can claim.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { PendingWork, QueueBody, WorkerBody } from "../../../../src/contract/queue.ts";
import { command } from "../../cli.ts";
import { now, serverNow } from "../../clock.ts";
import { Button, Command, copyText, NowLine, Prose } from "../../components/controls.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { count, duration } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { usePolling } from "../../polling.ts";
import { useResource } from "../../resource.ts";
import { href, param, setQuery } from "../../router.ts";
import { can } from "../../site.ts";
import { useTitle } from "../../title.ts";
import { LimitDialog } from "./limit-dialog.tsx";
import { totalsOf, unclaimable, WaitSamples, workText, type Totals } from "./queue-figures.ts";
import { askPause, QueueTable } from "./queue-table.tsx";
import { WorkerTable } from "./worker-table.tsx";
import "./queues.css";

interface Items<T> {
  readonly items: readonly T[];
}

const samples = new WaitSamples();
const EVERY_MS = 3000;

export default function QueuesPage(): JSX.Element {
  useTitle("Queues");
  const changes = { when: ({ kind }: { kind: string }) => kind === "queue" || kind === "worker", every: 1000 };
  const queues = useResource<Items<QueueBody>>("/v1/queues", changes);
  const pending = useResource<Items<PendingWork>>("/v1/pending", changes);
  const workers = useResource<Items<WorkerBody>>("/v1/workers", changes);
  const [limited, setLimited] = useState<QueueBody | undefined>(undefined);
  const reload = (): void => void Promise.all([queues.reload(), pending.reload(), workers.reload()]);
  usePolling(reload, EVERY_MS);
  const listed = queues.data?.items ?? [];
  useMemo(() => samples.add(listed, serverNow()), [queues.data]);
  const open = param("queue");
  const current = param("at") || listed[0]?.name || "";
  const chosen = listed.find(({ name }) => name === current);
  const move = (by: number): void => {
    const next =
      listed[Math.max(0, Math.min(listed.length - 1, listed.findIndex(({ name }) => name === current) + by))];
    if (next !== undefined) setQuery({ at: next.name });
  };
  const isAdmin = (): boolean => can("admin") && chosen !== undefined;
  useKeys("Queues", [
    { keys: "j", label: "next queue", run: () => move(1) },
    { keys: "k", label: "previous queue", run: () => move(-1) },
    { keys: "Enter", label: "open the queue", run: () => setQuery({ queue: open === current ? undefined : current }) },
    { keys: "p", label: "pause or resume", run: () => askPause(chosen!, reload), when: isAdmin },
    { keys: "l", label: "limit", run: () => setLimited(chosen), when: isAdmin },
    { keys: "c", label: "copy as CLI", run: () => void copyText(command("queue", "list")) },
  ]);
  const problem = queues.problem ?? pending.problem ?? workers.problem;
  const isLoaded = queues.data !== undefined && pending.data !== undefined && workers.data !== undefined;
  return (
    <>
      <div class="head">
        <h1>Queues and workers</h1>
        <span class="grow" />
        <Button icon="term" keys="c" onClick={() => copyText(command("queue", "list"))}>
          Copy as CLI
        </Button>
      </div>
      {!isLoaded && (problem === undefined ? <p class="muted">Loading …</p> : <p class="bad">{problem.detail}</p>)}
      {isLoaded && (
        <>
          <FirstLine
            queues={listed}
            pending={pending.data!.items}
            totals={totalsOf(listed, workers.data!.items, now.value)}
          />
          <Figures totals={totalsOf(listed, workers.data!.items, now.value)} />
          <QueueTable
            queues={listed}
            pending={pending.data!.items}
            samples={samples}
            open={open}
            current={current}
            onOpen={(name) => setQuery({ queue: name, at: name || current })}
            onLimit={setLimited}
            onChanged={reload}
          />
          <PendingTable pending={pending.data!.items} />
          {workers.data!.items.length > 0 && <WorkerTable workers={workers.data!.items} />}
        </>
      )}
      {limited !== undefined && <LimitDialog queue={limited} onClose={() => setLimited(undefined)} onDone={reload} />}
      <KeyRow
        keys={[
          ["J K", "move"],
          ["Enter", "open queue"],
          ["P", "pause or resume"],
          ["L", "limit"],
          ["C", "copy as CLI"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

interface FirstLineProps {
  readonly queues: readonly QueueBody[];
  readonly pending: readonly PendingWork[];
  readonly totals: Totals;
}

/** The line already begins with "No live worker can claim". */
function withoutLead(text: string): string {
  const rest = text.replace(/^No live worker can claim /, "");
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

function FirstLine({ queues, pending, totals }: FirstLineProps): JSX.Element {
  const [first, ...others] = unclaimable(pending);
  if (first !== undefined) {
    const reason = first.reasons[0]!;
    const wait = first.oldestAt === undefined ? undefined : now.value - Date.parse(first.oldestAt);
    const isOfRuns = first.kind === "run" || first.kind === "start";
    return (
      <NowLine
        status="stopped"
        lead={`No live worker can claim ${workText(first)}.`}
        {...(reason.next[0] !== undefined && { command: reason.next[0] })}
        {...(isOfRuns && {
          actions: (
            <a
              class="btn"
              href={href("/", { definition: first.name, status: first.kind === "start" ? "queued" : undefined })}
            >
              Show the {first.count === 1 ? "run" : `${count(first.count)} runs`}
            </a>
          ),
        })}
        {...(others.length > 0 && {
          aside: <span class="soft">and {others.map((one) => `${workText(one)} of ${one.name}`).join(", ")}</span>,
        })}
      >
        <Prose text={withoutLead(reason.text)} />
        {wait !== undefined && ` The oldest has waited ${duration(wait)}.`}
      </NowLine>
    );
  }
  if (totals.alive === 0)
    return (
      <NowLine status="failed" lead="No worker is alive." command="reprise worker <file>">
        {totals.workers === 0
          ? "None has ever registered in this store."
          : "Work waits until one starts; none of it is lost."}
      </NowLine>
    );
  const paused = queues.filter((queue) => queue.paused);
  if (paused[0] !== undefined)
    return (
      <NowLine
        status="paused"
        lead={paused.length === 1 ? `Queue ${paused[0].name} is paused.` : `${paused.length} queues are paused.`}
        command={command("queue", "resume", paused[0].name)}
      >
        {count(paused.reduce((sum, { ready }) => sum + ready, 0))} wait in {paused.length === 1 ? "it" : "them"}.
      </NowLine>
    );
  const waiting = pending.reduce((sum, one) => sum + one.count, 0);
  return (
    <NowLine status="completed" lead={waiting === 0 ? "Nothing waits." : "Live workers claim all work that waits."}>
      {waiting > 0 && `${count(waiting)} wait for a slot, a rate or a worker.`}
    </NowLine>
  );
}

function Figures({ totals }: { readonly totals: Totals }): JSX.Element {
  const { alive, workers, used, slots, stepsPerSecond, oldest, lost } = totals;
  return (
    <section class="card sum" aria-label="Totals">
      <div>
        <b>
          {count(alive)} <small>of {count(workers)} alive</small>
        </b>
        <span>workers</span>
      </div>
      <div>
        <b>
          {count(used)} <small>of {count(slots)}</small>
        </b>
        <span>slots in use</span>
      </div>
      <div>
        <b>
          {count(Math.round(stepsPerSecond * 10) / 10)} <small>/ s</small>
        </b>
        <span>steps</span>
      </div>
      <div>
        <b class={oldest !== undefined && oldest.ms > 60_000 ? "warm" : ""}>
          {oldest === undefined ? "—" : duration(oldest.ms)}
        </b>
        <span class="any">
          {oldest === undefined ? "nothing ready waits" : `oldest claimable, queue ${oldest.queue}`}
        </span>
      </div>
      <div>
        <b class={lost > 0 ? "hot" : ""}>{count(lost)}</b>
        <span>lost workers</span>
      </div>
    </section>
  );
}

function PendingTable({ pending }: { readonly pending: readonly PendingWork[] }): JSX.Element | null {
  if (pending.length === 0) return null;
  return (
    <section class="card q-card" aria-label="Work that waits">
      <header>
        <h2>Work that waits</h2>
        <span class="muted">by what claims it</span>
      </header>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Work that waits, table">
        <table class="tbl p-tbl">
          <thead>
            <tr>
              <th>Work</th>
              <th>Queue</th>
              <th class="num">Oldest</th>
              <th>Why</th>
              <th>Command</th>
            </tr>
          </thead>
          <tbody>
            {pending.slice(0, 50).map((work) => (
              <tr key={`${work.kind} ${work.name} ${work.version ?? ""} ${work.queue ?? ""} ${work.label ?? ""}`}>
                <td class="any">
                  {workText(work)} of <code>{work.name}</code>
                  {work.version !== undefined && <span class="muted"> v{work.version}</span>}
                  {work.label !== undefined && <span class="tag">{work.label}</span>}
                </td>
                <td>{work.queue ?? <span class="muted">default</span>}</td>
                <td class="num nowrap">
                  {work.oldestAt === undefined ? "—" : duration(Math.max(0, now.value - Date.parse(work.oldestAt)))}
                </td>
                <td class="soft any">{work.reasons[0] === undefined ? "—" : <Prose text={work.reasons[0].text} />}</td>
                <td>{work.reasons[0]?.next[0] !== undefined && <Command text={work.reasons[0].next[0]} />}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
