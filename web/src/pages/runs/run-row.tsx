// A row of the list: each cell follows its own signals, so that a change draws one cell.

import type { JSX } from "preact";
import type { RunNow } from "../../../../src/contract/run.ts";
import { now } from "../../clock.ts";
import { Meter } from "../../components/charts.tsx";
import { Prose } from "../../components/controls.tsx";
import { KindIcon } from "../../components/icon.tsx";
import { AttemptStrip, Status, StatusGlyph, statusWord } from "../../components/status.tsx";
import { amount, count, duration, longTime, shortTime, tickingDuration } from "../../format.ts";
import { href, runPath } from "../../router.ts";
import type { Row } from "./run-list.ts";

interface RunRowProps {
  readonly row: Row;
  readonly isCurrent: boolean;
  readonly isSelected: boolean;
  readonly canSelect: boolean;
  readonly onSelect: (id: string, range: boolean) => void;
}

export function RunRow({ row, isCurrent, isSelected, canSelect, onSelect }: RunRowProps): JSX.Element {
  const run = row.summary.value;
  const classes = [isSelected && "on", isCurrent && "cur", row.gone.value && "gone"].filter(Boolean).join(" ");
  return (
    <tr class={classes} aria-current={isCurrent ? "true" : undefined} data-run={row.id}>
      <td class="c-x">
        {canSelect && (
          <label>
            <input
              type="checkbox"
              checked={isSelected}
              aria-label={`Select ${row.id}`}
              onClick={(event) => onSelect(row.id, event.shiftKey)}
            />
          </label>
        )}
      </td>
      <td class="c-st">
        <Status status={run.status} />
      </td>
      <td class="c-id">
        <span class="row">
          <span class="only-s">
            <StatusGlyph status={run.status} label={statusWord(run.status)} />
          </span>
          <a class="id cut" href={href(runPath(row.id))} title={row.id}>
            {row.id}
          </a>
          <span class="row gap1 muted of">
            <KindIcon kind={run.kind} />
            <span class="cut">{run.definition}</span>
          </span>
        </span>
      </td>
      <td class="c-why">
        <Why row={row} />
      </td>
      <td class="c-att">
        <Attempts now={row.now.value} />
      </td>
      <td class="num c-start soft">
        <span class="row end" title={longTime(run.createdAt, now.peek())}>
          {shortTime(run.createdAt, now.peek())}
          <span class="only-s">
            <Attempts now={row.now.value} />
          </span>
        </span>
      </td>
      <td class="num c-dur">
        <Age from={run.createdAt} to={run.endedAt} />
      </td>
      <td class="num c-cost soft">{costText(row.now.value) ?? <span class="muted only-l">—</span>}</td>
    </tr>
  );
}

function Why({ row }: { readonly row: Row }): JSX.Element {
  const said = row.now.value;
  if (row.gone.value)
    return <span class="muted">{statusWord(row.summary.value.status)}; no longer matches the filter</span>;
  if (said === undefined) return <span class="why muted">…</span>;
  const { progress } = said;
  return (
    <span class="why" title={said.text.replaceAll("`", "")}>
      {progress !== undefined && (
        <Meter
          value={progress.done}
          max={progress.total}
          failed={progress.failed}
          label={`${count(progress.done)} of ${count(progress.total)}`}
        />
      )}
      <span class="cut">
        <Prose text={said.text} />
      </span>
    </span>
  );
}

/** `$0.84 of $2`; of a budget without dollars, its first unit. */
export function costText(said: RunNow | undefined): string | undefined {
  const { spent, cap } = said?.budget ?? {};
  const unit = (["usd", "tokens", "calls"] as const).find((one) => cap?.[one] !== undefined);
  if (spent === undefined || cap === undefined || unit === undefined) return undefined;
  const paid = spent[unit] ?? 0;
  return `${unit === "usd" ? amount(unit, paid) : count(paid)} of ${amount(unit, cap[unit]!)}`;
}

function Attempts({ now: said }: { readonly now: RunNow | undefined }): JSX.Element {
  const attempts = said?.attempts ?? [];
  // One execution that went well needs no picture.
  if (attempts.length === 0 || (attempts.length === 1 && attempts[0] === "completed")) {
    return <span class="muted only-l">{attempts.length === 0 ? "—" : "1"}</span>;
  }
  return <AttemptStrip attempts={attempts} />;
}

/** How long a run takes or took; it ticks while the run lives. */
export function Age({ from, to }: { readonly from: string; readonly to: string | undefined }): JSX.Element {
  if (to !== undefined) return <>{duration(Date.parse(to) - Date.parse(from))}</>;
  return <>{tickingDuration(now.value - Date.parse(from))}</>;
}
