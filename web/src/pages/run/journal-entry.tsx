// An entry of a journal: one line, which opens to its data.

import type { JSX } from "preact";
import type { JournalEntryBody } from "../../../../src/contract/run.ts";
import { Hidden, Json } from "../../components/json.tsx";
import { exactTime } from "../../format.ts";
import { param, setQuery } from "../../router.ts";

/** One entry; a press opens its data. Which one is open stands in the address. */
export function Entry({ entry }: { readonly entry: JournalEntryBody }): JSX.Element {
  const isOpen = param("entry") === String(entry.seq);
  return (
    <li class={`entry ${entry.line.tone} ${isOpen ? "sel" : ""}`}>
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={() => setQuery({ entry: isOpen ? "" : entry.seq }, { push: !isOpen })}
      >
        <span class="seq">{entry.seq}</span>
        <time>{exactTime(entry.at)}</time>
        <span class="mono cut">{entry.type}</span>
        <b class="cut">{entry.line.name}</b>
        <span class="cut text">{entry.line.text}</span>
      </button>
      {isOpen && (
        <div class="entry-data">
          <p class="muted">
            {entry.command !== undefined && (
              <a class="link mono" href="#step" onClick={(event) => openStep(event, entry.command!)}>
                {entry.command}
              </a>
            )}
            {entry.worker !== undefined && ` on ${entry.worker}`}
            {entry.execution !== undefined && `, execution ${entry.execution}`}
          </p>
          {entry.hidden !== undefined ? (
            <Hidden />
          ) : (
            <Json value={entry.data} label={`Data of entry ${entry.seq}`} open={3} />
          )}
        </div>
      )}
    </li>
  );
}

function openStep(event: MouseEvent, step: string): void {
  event.preventDefault();
  setQuery({ step }, { push: true });
}
