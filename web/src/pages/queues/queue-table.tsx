// Queue table: a row per queue; an open row shows keys at their limit and why the work waits.

import type { JSX } from "preact";
import type { PendingWork, QueueBody } from "../../../../src/contract/queue.ts";
import { at, post } from "../../api.ts";
import { command } from "../../cli.ts";
import { now } from "../../clock.ts";
import { Meter, Sparkline } from "../../components/charts.tsx";
import { Button, Command, Prose } from "../../components/controls.tsx";
import { ask } from "../../components/dialog.tsx";
import { Status } from "../../components/status.tsx";
import { count, duration, plural, shortTime } from "../../format.ts";
import { useResource } from "../../resource.ts";
import { href, runPath } from "../../router.ts";
import { can } from "../../site.ts";
import { rateText, workText, type WaitSamples } from "./queue-figures.ts";

interface QueueTableProps {
  readonly queues: readonly QueueBody[];
  readonly pending: readonly PendingWork[];
  readonly samples: WaitSamples;
  readonly open: string;
  readonly current: string;
  readonly onOpen: (name: string) => void;
  readonly onLimit: (queue: QueueBody) => void;
  readonly onChanged: () => void;
}

/** Waits above this are marked. */
const LONG_MS = 60_000;

export function askPause(queue: QueueBody, onChanged: () => void): void {
  const verb = queue.paused ? "resume" : "pause";
  ask({
    title: queue.paused ? `Resume ${queue.name}` : `Pause ${queue.name}`,
    text: queue.paused
      ? `Workers claim work from ${queue.name} again; ${count(queue.ready)} wait.`
      : `Workers claim no more work from ${queue.name}. What runs now (${count(queue.leased)}) finishes.`,
    confirm: queue.paused ? "Resume" : "Pause",
    reason: true,
    command: () => command("queue", verb, queue.name),
    run: async (reason) => {
      await post(at`/v1/queues/${queue.name}/${verb}`, reason === "" ? {} : { reason });
      onChanged();
    },
  });
}

export function QueueTable(props: QueueTableProps): JSX.Element {
  return (
    <section class="card q-card" aria-label="Queues">
      <header>
        <h2>Queues</h2>
        <span class="muted">limits hold over all workers</span>
      </header>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Queues, table">
        <table class="tbl q-tbl">
          <thead>
            <tr>
              <th>Queue</th>
              <th>Saturation</th>
              <th class="num">Ready</th>
              <th>Oldest waiting</th>
              <th class="num">Delayed</th>
              <th>Further limits</th>
              <th class="num">
                <span class="vh">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {props.queues.map((queue) => (
              <QueueRow key={queue.name} {...props} queue={queue} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function QueueRow(props: QueueTableProps & { readonly queue: QueueBody }): JSX.Element {
  const { queue, open, current, onOpen, samples } = props;
  const { name, limits, leased } = queue;
  const isOpen = open === name;
  const wait = queue.oldestReadyAt === undefined ? undefined : Math.max(0, now.value - Date.parse(queue.oldestReadyAt));
  const isFull = limits.concurrency !== undefined && leased >= limits.concurrency;
  const rate = rateText(limits);
  return (
    <>
      <tr class={current === name ? "cur" : ""}>
        <td>
          <button
            type="button"
            class="plain strong any"
            aria-expanded={isOpen}
            onClick={() => onOpen(isOpen ? "" : name)}
          >
            {name}
          </button>
        </td>
        <td>
          {queue.paused ? (
            <Status
              status="paused"
              word={queue.pausedAt === undefined ? "Paused" : `Paused since ${shortTime(queue.pausedAt, now.value)}`}
            />
          ) : limits.concurrency === undefined ? (
            <span class="soft">{count(leased)} running, no limit</span>
          ) : (
            <span class="sat">
              <Meter
                value={leased}
                max={limits.concurrency}
                width={104}
                tone={isFull && queue.ready > 0 ? "s-waiting" : "s-running"}
                label={`${leased} of ${limits.concurrency} in use`}
              />
              <span>
                {count(leased)} of {count(limits.concurrency)}
              </span>
            </span>
          )}
        </td>
        <td class="num" data-l="Ready">
          {many(queue.ready)}
        </td>
        <td>
          <span class="row wait">
            <Sparkline values={samples.of(name)} label={`Oldest waiting in ${name} since the page was opened`} />
            {wait === undefined ? (
              <span class="muted">—</span>
            ) : (
              <span class={wait > LONG_MS ? "warm nowrap" : "nowrap"}>{duration(wait)}</span>
            )}
          </span>
        </td>
        <td class="num soft" data-l="Delayed">
          {many(queue.delayed)}
        </td>
        <td class="soft" data-l="Limits">
          {rate === "" ? <span class="muted">none</span> : rate}
        </td>
        <td class="num nowrap">
          {can("admin") && (
            <>
              <Button
                {...(!queue.paused && { kind: "ghost" as const })}
                small
                acts
                icon={queue.paused ? "play" : "pause"}
                onClick={() => askPause(queue, props.onChanged)}
              >
                {queue.paused ? "Resume" : "Pause"}
              </Button>
              <Button kind="ghost" small acts onClick={() => props.onLimit(queue)}>
                Limit…
              </Button>
            </>
          )}
        </td>
      </tr>
      {isOpen && (
        <tr class="x">
          <td colSpan={7}>
            <QueueDetail queue={queue} pending={props.pending.filter((work) => work.queue === name)} />
          </td>
        </tr>
      )}
    </>
  );
}

const many = (value: number): string => (value >= 1000 ? "1,000+" : count(value));

function QueueDetail({
  queue,
  pending,
}: {
  readonly queue: QueueBody;
  readonly pending: readonly PendingWork[];
}): JSX.Element {
  const detail = useResource<QueueBody>(at`/v1/queues/${queue.name}`, {
    when: ({ kind }) => kind === "queue" || kind === "run",
    every: 2000,
  });
  const keys = detail.data?.fullKeys ?? [];
  const commands = [...new Set(pending.flatMap(({ reasons }) => reasons.flatMap(({ next }) => next.slice(0, 1))))];
  return (
    <div class="keys">
      <div>
        <h3>Keys at their limit</h3>
        {keys.length === 0 ? (
          <p class="muted small">{queue.limits.perKey === undefined ? "The queue has no limit per key." : "None."}</p>
        ) : (
          <div class="hold">
            {keys.map(({ key, held, limit, holders }) => (
              <>
                <span class="mono cut">{key}</span>
                <span class="any">
                  held by{" "}
                  {holders.length === 0
                    ? plural(held, "run")
                    : holders.slice(0, 3).map((run, index) => (
                        <>
                          {index > 0 && ", "}
                          <a class="link mono" href={href(runPath(run))}>
                            {run}
                          </a>
                        </>
                      ))}
                </span>
                <span class="num soft">
                  {held} of {limit}
                </span>
              </>
            ))}
          </div>
        )}
      </div>
      <div>
        <h3>Why it waits</h3>
        {pending.length === 0 ? (
          <p class="muted small">Nothing waits in this queue.</p>
        ) : (
          <ul class="small why-list">
            {pending.slice(0, 6).map((work) => (
              <li key={`${work.kind} ${work.name}`} class="any">
                <b class="strong">{workText(work)}</b> of <code>{work.name}</code>
                {work.reasons[0] !== undefined && (
                  <>
                    : <Prose text={work.reasons[0].text} />
                  </>
                )}
              </li>
            ))}
          </ul>
        )}
        {commands.slice(0, 3).map((text) => (
          <p key={text} class="row row-w one-cmd">
            <Command text={text} />
          </p>
        ))}
      </div>
    </div>
  );
}
