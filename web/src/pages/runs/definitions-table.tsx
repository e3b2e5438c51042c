// Definitions: what runs of each definition do now, and how they went in the last hour.

import type { JSX } from "preact";
import type { DefinitionStats } from "../../../../src/contract/definition.ts";
import { Bars, Sparkline } from "../../components/charts.tsx";
import { KindIcon } from "../../components/icon.tsx";
import { StatusGlyph } from "../../components/status.tsx";
import { count, duration, percent } from "../../format.ts";
import { hrefWith, param } from "../../router.ts";

const RECENT_MINUTES = 5;

/** More definitions than this push the list of runs out of sight. */
const SHOWN = 5;

const activity = ({ live, total }: DefinitionStats): number =>
  total.ended + Object.values(live).reduce((sum, one) => sum + one, 0);

export function DefinitionsTable({ items }: { readonly items: readonly DefinitionStats[] }): JSX.Element {
  const isAll = param("definitions") === "all" || items.length <= SHOWN + 1;
  const busiest = [...items].sort((a, b) => activity(b) - activity(a));
  const chosen = busiest.slice(SHOWN).filter(({ definition }) => definition === param("definition"));
  const shown = isAll ? items : [...busiest.slice(0, SHOWN), ...chosen];
  return (
    <section class="card defs" aria-label="Definitions, last hour">
      <table class="tbl">
        <thead>
          <tr>
            <th class="c-def">Definition</th>
            <th class="c-now">Now</th>
            <th>Throughput, last hour</th>
            <th>
              p95 <span aria-hidden="true">—</span> p50 <span aria-hidden="true">┄</span>
            </th>
            <th>Failed</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((item) => (
            <DefinitionRow key={item.definition} item={item} />
          ))}
        </tbody>
      </table>
      {items.length > SHOWN + 1 && (
        <a class="link all-defs" href={hrefWith({ definitions: isAll ? "" : "all" })}>
          {isAll ? "Show the busiest definitions" : `Show all ${items.length} definitions`}
        </a>
      )}
    </section>
  );
}

const NOW: readonly (keyof DefinitionStats["live"])[] = ["running", "waiting", "queued", "paused", "stopped"];

function DefinitionRow({ item }: { readonly item: DefinitionStats }): JSX.Element {
  const name = item.definition;
  const isChosen = param("definition") === name;
  const recent = item.ended.slice(-RECENT_MINUTES);
  const rate = recent.reduce((sum, value) => sum + value, 0) / Math.max(1, recent.length);
  const hasStalled = rate === 0 && item.live.queued > 0;
  const { ended, failed, p50Ms, p95Ms } = item.total;
  return (
    <tr class={isChosen ? "on" : ""}>
      <td>
        <span class="row">
          <KindIcon kind={item.kind} />
          <a
            class="strong cut"
            href={hrefWith({ definition: isChosen ? "" : name, after: "" })}
            title={isChosen ? "Show the runs of all definitions" : `Show the runs of ${name}`}
          >
            {name}
          </a>
          <span class="muted nowrap">{versionsOf(item)}</span>
        </span>
      </td>
      <td>
        <span class="nowc">
          {NOW.filter((status) => item.live[status] > 0).map((status) => (
            <span key={status} class="row gap1" title={status}>
              <StatusGlyph status={status} />
              {count(item.live[status])}
              <span class="vh"> {status}</span>
            </span>
          ))}
          {NOW.every((status) => item.live[status] === 0) && <span class="muted">—</span>}
        </span>
      </td>
      <td data-l="Throughput">
        <span class="fx">
          <Sparkline values={item.ended} label={`${name}: ended runs per minute, last hour`} />
          <span class={hasStalled ? "v slow" : "v"}>
            {rate >= 10 ? count(Math.round(rate)) : Number(rate.toFixed(1))} / min
          </span>
        </span>
      </td>
      <td data-l="p95, p50">
        <span class="fx">
          <Sparkline
            values={item.p95 as readonly (number | null)[]}
            second={item.p50 as readonly (number | null)[]}
            label={`${name}: p95 and p50 of the duration, last hour`}
          />
          <span class="v">
            {p95Ms === undefined ? <span class="muted">no run ended</span> : duration(p95Ms)}
            {p50Ms !== undefined && <span class="muted"> · {duration(p50Ms)}</span>}
          </span>
        </span>
      </td>
      <td data-l="Failed">
        <span class="fx">
          <Bars values={item.failed} label={`${name}: failed runs, last hour`} />
          <span class="v">
            {count(failed)}
            {ended > 0 && (
              <span class="muted">
                {" "}
                · {percent(failed, ended)}
                {item.sampled && " of a sample"}
              </span>
            )}
          </span>
        </span>
      </td>
    </tr>
  );
}

/** `v3`, `v3, 4% v2`. */
function versionsOf({ versions }: DefinitionStats): string {
  const [newest, ...older] = [...versions].sort((a, b) => b.version - a.version);
  if (newest === undefined) return "";
  const live = versions.reduce((sum, one) => sum + one.live, 0);
  const others = older.filter((one) => one.live > 0).map((one) => `${percent(one.live, live)} v${one.version}`);
  return [`v${newest.version}`, ...others].join(", ");
}
