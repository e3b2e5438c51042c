// Journal: every entry of a run in order, with its sentence; an entry opens to its data. Long journals are drawn where they can be seen.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { command } from "../../cli.ts";
import { Button, Command } from "../../components/controls.tsx";
import { count, plural } from "../../format.ts";
import { useJournal } from "./journal-data.ts";
import { Entry } from "./journal-entry.tsx";
import { ViewSwitch } from "./view-switch.tsx";
import type { RunViewProps } from "./views.ts";

const ALL_DRAWN = 200;
const ROW_HEIGHT = 30;

export default function JournalView({ run }: RunViewProps): JSX.Element {
  const journal = useJournal(run);
  const entries = journal.entries.value;
  const top = useSignal(0);
  const box = useRef<HTMLDivElement>(null);
  const isLong = entries.length > ALL_DRAWN;
  const first = isLong ? Math.max(0, Math.floor(top.value / ROW_HEIGHT) - 15) : 0;
  const shown = isLong ? entries.slice(first, first + 80) : entries;
  return (
    <section class="card tl" aria-label="Journal">
      <header>
        <h2>Journal</h2>
        <span class="muted">{plural(run.entries, "entry", "entries")}</span>
        <span class="grow" />
        <ViewSwitch run={run} />
      </header>
      {journal.problem.value !== undefined && <p class="pad">{journal.problem.value.detail}</p>}
      <div
        class={isLong ? "j-box" : ""}
        ref={box}
        {...(isLong && { tabIndex: 0, role: "region" as const, "aria-label": `${count(entries.length)} entries` })}
        onScroll={(event) => (top.value = event.currentTarget.scrollTop)}
      >
        <ol class="journal">
          {isLong && <li class="gap" style={{ height: `${first * ROW_HEIGHT}px` }} aria-hidden="true" />}
          {shown.map((entry) => (
            <Entry key={entry.seq} entry={entry} />
          ))}
          {isLong && (
            <li
              class="gap"
              style={{ height: `${Math.max(0, entries.length - first - shown.length) * ROW_HEIGHT}px` }}
              aria-hidden="true"
            />
          )}
        </ol>
      </div>
      <div class="more">
        {journal.next.value !== undefined && (
          <Button small onClick={() => journal.more()}>
            Load more, {count(entries.length)} of {count(run.entries)} shown
          </Button>
        )}
        <Command text={command("journal", run.id)} />
      </div>
    </section>
  );
}
