// Worker table: who executes, how busy, with which code, and who is lost.

import type { JSX } from "preact";
import type { WorkerBody } from "../../../../src/contract/queue.ts";
import { now } from "../../clock.ts";
import { Meter } from "../../components/charts.tsx";
import { count, duration, shortTime } from "../../format.ts";

export function WorkerTable({ workers }: { readonly workers: readonly WorkerBody[] }): JSX.Element {
  const leases = [...new Set(workers.filter(({ alive }) => alive).map(({ leaseMs }) => leaseMs))].filter(
    (ms) => ms !== undefined,
  );
  return (
    <section class="card" aria-label="Workers">
      <header>
        <h2>Workers</h2>
        {leases.length === 1 && (
          <span class="muted">
            lease {duration(leases[0]!)}, renewed every {duration(leases[0]! / 3)}
          </span>
        )}
      </header>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Workers, table">
        <table class="tbl w-tbl">
          <thead>
            <tr>
              <th>Worker</th>
              <th>Heartbeat</th>
              <th>Slots</th>
              <th class="num">Runs held</th>
              <th class="num">Steps / s</th>
              <th>Code</th>
              <th>Claims</th>
            </tr>
          </thead>
          <tbody>
            {workers.map((worker) => (
              <WorkerRow key={worker.worker} worker={worker} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function WorkerRow({ worker }: { readonly worker: WorkerBody }): JSX.Element {
  const { alive, draining, concurrency, running } = worker;
  // The default name of a worker is made of its host and process.
  const place = [worker.host, worker.pid]
    .filter((part) => part !== undefined && !worker.name.includes(String(part)))
    .join(" · ");
  const beat = worker.heartbeatAt === undefined ? undefined : Math.max(0, now.value - Date.parse(worker.heartbeatAt));
  const code = worker.definitions.map(({ name, version }) => `${name} v${version}`).join(", ");
  return (
    <tr class={alive ? "wk" : "wk lost"}>
      <td>
        <span class="row">
          <span class={`dot ${alive ? (draining ? "warn" : "") : "bad"}`} />
          <span class="any">
            <b class="strong nowrap">{worker.name}</b> <span class="muted">{place}</span>
          </span>
        </span>
      </td>
      <td class="nowrap">
        {alive ? (
          <>
            {beat === undefined ? "—" : `${duration(Math.max(100, beat))} ago`}
            {draining && " · draining"}
          </>
        ) : (
          <span class="hot">lost at {shortTime(worker.leaseUntil, now.value)}</span>
        )}
      </td>
      <td data-l="Slots">
        {concurrency === undefined ? (
          <span class="muted">—</span>
        ) : (
          <span class="row">
            <Meter
              value={alive ? (running ?? 0) : 0}
              max={concurrency}
              width={96}
              tone="s-running"
              label={`${running ?? 0} of ${concurrency} slots in use`}
            />
            <span class="nowrap">
              {count(alive ? (running ?? 0) : 0)} of {count(concurrency)}
            </span>
          </span>
        )}
      </td>
      <td class="num" data-l="Runs held">
        {worker.runsHeld === undefined ? "—" : count(worker.runsHeld)}
      </td>
      <td class="num" data-l="Steps / s">
        {!alive || worker.stepsPerSecond === undefined ? "—" : count(Math.round(worker.stepsPerSecond * 10) / 10)}
      </td>
      <td class="soft mono any code-cell" title={code}>
        {code.length > 90 ? `${code.slice(0, 90)}…` : code || "no definition"}
      </td>
      <td class="claims">{claims(worker)}</td>
    </tr>
  );
}

function claims({ alive, draining, queues, labels, runsHeld }: WorkerBody): JSX.Element {
  if (!alive) return <span class="muted">other workers take over what it held</span>;
  if (draining)
    return <span>finishes {runsHeld === undefined ? "its work" : `${count(runsHeld)} runs`}, then stops</span>;
  return (
    <span class="row row-w gap1">
      {queues === undefined || queues.length === 0
        ? "all queues"
        : queues.map((name) => (
            <span key={name} class="tag">
              {name}
            </span>
          ))}
      {labels !== undefined && labels.length > 0 && (
        <>
          label
          {labels.map((name) => (
            <span key={name} class="tag">
              {name}
            </span>
          ))}
        </>
      )}
    </span>
  );
}
