// Takeovers: what the loss of a worker cost: what was repeated, what was not, and how long the run had no worker.

import type { JSX } from "preact";
import type { Timeline, TimelineTakeover } from "../../../../src/contract/timeline.ts";
import { duration, exactDuration, exactTime, plural } from "../../format.ts";

const SHOWN = 3;

export function Takeovers({ timeline }: { readonly timeline: Timeline }): JSX.Element | null {
  const { takeovers } = timeline;
  if (takeovers.length === 0) return null;
  return (
    <>
      {takeovers
        .slice(-SHOWN)
        .reverse()
        .map((one) => (
          <TakeoverCard key={one.takenAt} takeover={one} timeline={timeline} />
        ))}
      {takeovers.length > SHOWN && (
        <p class="muted pad">{plural(takeovers.length - SHOWN, "earlier takeover")} not shown.</p>
      )}
    </>
  );
}

function TakeoverCard({
  takeover,
  timeline,
}: {
  readonly takeover: TimelineTakeover;
  readonly timeline: Timeline;
}): JSX.Element {
  const { from = "the worker", to, lostAt, takenAt, lostSteps, replayedEntries } = takeover;
  const gap = Date.parse(takenAt) - Date.parse(lostAt);
  const lost = timeline.rows.filter(({ command }) => lostSteps.includes(command));
  const [first] = lost;
  const span = first?.spans.find(({ kind, to: end }) => kind === "lost" && (end ?? "") >= lostAt);
  const into = span === undefined ? 0 : Date.parse(lostAt) - Date.parse(span.from);
  return (
    <section class="card story" aria-label="Takeover">
      <header>
        <h2>Takeover</h2>
        <span class="muted">
          {from} to {to}
        </span>
      </header>
      <ol>
        <li>
          <time>{exactTime(lostAt)}</time>
          <i class="x" />
          <span>
            {from} stopped renewing its lease
            {first !== undefined && (
              <>
                {into > 0 ? `, ${duration(into)} into ` : " in "}
                <code>{first.name}</code>
              </>
            )}
          </span>
        </li>
        <li>
          <time>{exactTime(takenAt)}</time>
          <i class="k" />
          <span>
            The lease expired. {to} claimed the run; from here the store rejects every write of {from}
          </span>
        </li>
        <li>
          <time>{exactTime(takenAt)}</time>
          <i />
          <span>
            {to} replayed {plural(replayedEntries, "entry", "entries")}: code and journal agree
          </span>
        </li>
        {lost.map((row) => {
          const done = row.spans.find(({ kind, to: end }) => kind === "work" && end !== undefined && end >= takenAt);
          const runs = row.spans.some(({ kind }) => kind === "running");
          return (
            <li key={row.command}>
              <time>{done?.to === undefined ? "" : exactTime(done.to)}</time>
              <i class={done === undefined ? "" : "o"} />
              <span>
                <code>{row.name}</code>{" "}
                {done !== undefined
                  ? "committed, with the idempotency key of the lost execution"
                  : runs
                    ? "runs again, with the idempotency key of the lost execution"
                    : "is repeated with the same idempotency key"}
              </span>
            </li>
          );
        })}
      </ol>
      <div class="facts">
        <div>
          <b>{exactDuration(gap)}</b>
          <span>without a worker</span>
        </div>
        <div>
          <b>0</b>
          <span>committed steps repeated</span>
        </div>
        <div>
          <b>{lostSteps.length}</b>
          <span>{lostSteps.length === 1 ? "call made again, same key" : "calls made again, same key"}</span>
        </div>
        <div>
          <b>{replayedEntries}</b>
          <span>{replayedEntries === 1 ? "entry replayed" : "entries replayed"}</span>
        </div>
      </div>
    </section>
  );
}
