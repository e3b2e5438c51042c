// Runs: the live list, the definitions of the last hour, filters in the address, actions on many runs.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { DefinitionBody, DefinitionStats, RunCounts } from "../../../../src/contract/definition.ts";
import type { WorkerBody } from "../../../../src/contract/queue.ts";
import { Button, Chip, copyText, NowLine } from "../../components/controls.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { StatusGlyph } from "../../components/status.tsx";
import { count, plural } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { onChange } from "../../live.ts";
import { useResource } from "../../resource.ts";
import { address, go, href, hrefWith, param, runPath, setQuery } from "../../router.ts";
import { can } from "../../site.ts";
import { useTitle } from "../../title.ts";
import { askBulk, BulkBar, type BulkAction, type Selection } from "./bulk-bar.tsx";
import { DefinitionsTable } from "./definitions-table.tsx";
import { NoRuns } from "./empty.tsx";
import { FilterDialog } from "./filter-dialog.tsx";
import { FACETS, isCounted, isNarrowed, listCommand, readFilter, type Facet, type Filter } from "./filter.ts";
import { firstLineOf } from "./first-line.ts";
import { createRunList, MOST_ROWS, type Row, type RunList } from "./run-list.ts";
import { RunRow } from "./run-row.tsx";
import { StartDialog } from "./start-form.tsx";
import "./runs.css";

const REASONS_MS = 10_000;
const CHANGED_MS = 400;

/** The run whose row is marked; it stays when the person comes back from its page. */
let lastOpened = "";

function useRunList(): RunList {
  const { query } = address.value;
  const filterKey = ["status", "definition", "tag", "started", "q", "errorCode", "kind", "parent", "after"]
    .map((name) => query.getAll(name).join("\n"))
    .join("\0");
  const list = useMemo(() => createRunList(readFilter(), param("after")), [filterKey]);
  useEffect(() => {
    void list.load();
    let soon: ReturnType<typeof setTimeout> | undefined;
    const stop = onChange((event) => {
      list.take(event);
      if (event.kind !== "run") return;
      soon ??= setTimeout(() => {
        soon = undefined;
        void list.readReasons(false);
      }, CHANGED_MS);
    });
    const timer = setInterval(() => {
      if (!document.hidden) void list.readReasons(true);
    }, REASONS_MS);
    return () => {
      stop();
      clearInterval(timer);
      clearTimeout(soon);
    };
  }, [list]);
  return list;
}

export default function RunsPage(): JSX.Element {
  useTitle("Runs");
  const list = useRunList();
  const { filter } = list;
  const stats = useResource<{ readonly items: readonly DefinitionStats[] }>("/v1/stats", {
    when: ({ kind }) => kind === "run",
    every: 5000,
  });
  const counts = useResource<RunCounts>("/v1/counts", {
    query: { definition: filter.definition, tag: filter.tags },
    when: ({ kind }) => kind === "run",
    every: 2000,
  });
  const definitions = useResource<{ readonly items: readonly DefinitionBody[] }>("/v1/definitions", {
    query: { limit: 500 },
    when: ({ kind }) => kind === "worker",
    every: 5000,
  });
  const total =
    counts.data === undefined ? undefined : Object.values(counts.data.counts).reduce((sum, one) => sum + one, 0);
  const isEmpty = total === 0 && !isNarrowed(filter) && list.rows.value.length === 0;
  const workers = useResource<{ readonly items: readonly WorkerBody[] }>("/v1/workers", {
    when: ({ kind }) => kind === "worker",
    every: 2000,
  });
  const first =
    counts.data === undefined
      ? undefined
      : firstLineOf(counts.data, workers.data?.items.filter(({ alive }) => alive).length);
  const isStarting = param("start") !== "";
  const start = (): void => setQuery({ start: filter.definition || "1" }, { push: true });
  useKeys("Runs", [{ keys: "n", label: "Start a run", run: start, when: () => can("operator") }]);
  return (
    <>
      <div class="head">
        <h1>Runs</h1>
        <span class="grow" />
        {can("operator") && (
          <Button kind="primary" icon="play" keys="n" acts onClick={start}>
            Start a run
          </Button>
        )}
      </div>
      {isEmpty ? (
        <NoRuns definitions={definitions.data?.items ?? []} workers={workers.data?.items ?? []} />
      ) : (
        <>
          {first !== undefined && (
            <NowLine
              status={first.status}
              lead={first.lead}
              {...(first.command !== undefined && { command: first.command })}
            >
              {first.text}
            </NowLine>
          )}
          {(stats.data?.items.length ?? 0) > 0 && <DefinitionsTable items={stats.data!.items} />}
          <RunsCard
            list={list}
            counts={counts.data}
            definitions={stats.data?.items.map(({ definition }) => definition) ?? []}
          />
        </>
      )}
      <KeyRow
        keys={
          isEmpty
            ? [
                ["N", "start a run"],
                ["/", "commands"],
                ["?", "all keys"],
              ]
            : [
                ["J K", "move"],
                ["X", "select"],
                ["Enter", "open"],
                ["F", "filter"],
                ["/", "search"],
                [".", "show new runs"],
                ["G A", "approvals"],
                ["?", "all keys"],
              ]
        }
      />
      {isStarting && definitions.data !== undefined && (
        <StartDialog
          definitions={definitions.data.items}
          chosen={param("start")}
          onClose={() => setQuery({ start: "" })}
        />
      )}
    </>
  );
}

interface RunsCardProps {
  readonly list: RunList;
  readonly counts: RunCounts | undefined;
  readonly definitions: readonly string[];
}

function RunsCard({ list, counts, definitions }: RunsCardProps): JSX.Element {
  const { filter } = list;
  const rows = list.rows.value;
  const current = useSignal(lastOpened);
  const selected = useSignal<ReadonlySet<string>>(new Set());
  const everything = useSignal(false);
  const anchor = useRef("");
  const isFiltering = useSignal(false);
  const canSelect = can("operator");

  useEffect(() => {
    selected.value = new Set();
    everything.value = false;
  }, [list]);

  const indexOf = (id: string): number => rows.findIndex((row) => row.id === id);
  const move = (by: number): void => {
    const index = Math.min(rows.length - 1, Math.max(0, indexOf(current.value) + by));
    current.value = rows[index]?.id ?? "";
    const element = document.querySelector(`tr[data-run="${CSS.escape(current.value)}"]`);
    element?.scrollIntoView({ block: "nearest" });
    element?.querySelector("a")?.focus({ preventScroll: true });
  };
  const select = (id: string, range: boolean): void => {
    const next = new Set(selected.value);
    const [from, to] = [indexOf(anchor.current), indexOf(id)].sort((a, b) => a - b) as [number, number];
    if (range && from >= 0) for (const row of rows.slice(from, to + 1)) next.add(row.id);
    else if (next.has(id)) next.delete(id);
    else next.add(id);
    anchor.current = id;
    everything.value = false;
    selected.value = next;
  };
  const clear = (): void => {
    selected.value = new Set();
    everything.value = false;
  };
  const ids = [...selected.value];
  const selection: Selection = everything.value ? { filter } : { ids };
  const actions = actionsFor(rows.filter((row) => selected.value.has(row.id)));
  const bulk = (action: BulkAction) => (): void => {
    if (actions.includes(action)) void askBulk(action, selection, clear);
  };
  const hasSelection = (): boolean => selected.value.size > 0;

  useKeys("List", [
    { keys: "j", label: "Next run", run: () => move(1) },
    { keys: "k", label: "Previous run", run: () => move(-1) },
    { keys: "ArrowDown", label: "Next run", run: () => move(1), hidden: true },
    { keys: "ArrowUp", label: "Previous run", run: () => move(-1), hidden: true },
    { keys: "Enter", label: "Open the run", run: () => openRun(current.value), when: () => current.value !== "" },
    {
      keys: "x",
      label: "Select",
      run: () => select(current.value, false),
      when: () => canSelect && current.value !== "",
    },
    {
      keys: "Shift+X",
      label: "Select up to here",
      run: () => select(current.value, true),
      when: () => canSelect && current.value !== "",
    },
    { keys: "Escape", label: "Clear the selection", run: clear, when: hasSelection },
    { keys: "r", label: "Retry the selected runs", run: bulk("retry"), when: hasSelection },
    { keys: "p", label: "Pause the selected runs", run: bulk("pause"), when: hasSelection },
    { keys: "f", label: "Filter", run: () => (isFiltering.value = true) },
    { keys: ".", label: "Show new runs", run: () => void list.load() },
    { keys: "c", label: "Copy as CLI", run: () => void copyText(listCommand(filter)) },
  ]);

  const number = matchCount(filter, counts, rows.length, list.next.value !== undefined);
  const selectAll = canSelectAll(number, ids.length, everything.value)
    ? {
        label:
          `Select all ${number} ${filter.facet.name === "" || filter.facet.name === "all" ? "" : filter.facet.label.toLowerCase()}`.trim(),
        run: () => (everything.value = true),
      }
    : undefined;
  return (
    <>
      <section class="card runs" aria-label="Runs">
        <Facets filter={filter} counts={counts} />
        <Filters filter={filter} matching={number} onFilter={() => (isFiltering.value = true)} />
        <div class="list">
          {list.fresh.value > 0 && rows.length > 0 && (
            <Button class="newer" icon="up" keys="." onClick={() => list.load()}>
              {plural(list.fresh.value, "new run")}
            </Button>
          )}
          <RunTable
            list={list}
            current={current.value}
            selected={selected.value}
            canSelect={canSelect}
            onSelect={select}
            onAll={(on) => (selected.value = new Set(on ? rows.map(({ id }) => id) : []))}
          />
        </div>
      </section>
      {ids.length > 0 && (
        <BulkBar
          selection={selection}
          selected={everything.value ? `All ${number} selected` : `${ids.length} selected`}
          selectAll={selectAll}
          actions={actions}
          onDone={clear}
        />
      )}
      {isFiltering.value && (
        <FilterDialog filter={filter} definitions={definitions} onClose={() => (isFiltering.value = false)} />
      )}
    </>
  );
}

function openRun(id: string): void {
  lastOpened = id;
  go(href(runPath(id)));
}

/** What can be done to these runs; what applies to none of them is not offered. */
function actionsFor(rows: readonly Row[]): readonly BulkAction[] {
  const statuses = new Set<string>(rows.map((row) => row.summary.value.status));
  const has = (...wanted: readonly string[]): boolean => wanted.some((status) => statuses.has(status));
  const isLive = has("queued", "running", "waiting", "paused", "blocked", "determinism_violation");
  return [
    ...(has("failed") ? (["retry"] as const) : []),
    ...(has("paused", "blocked", "determinism_violation") ? (["resume"] as const) : []),
    ...(has("queued", "running", "waiting") ? (["pause"] as const) : []),
    ...(isLive ? (["cancel"] as const) : []),
  ];
}

function canSelectAll(number: string, chosen: number, everything: boolean): boolean {
  return !everything && can("admin") && number !== count(chosen);
}

function countOf(facet: Facet, counts: RunCounts): string {
  const statuses = facet.statuses ?? (Object.keys(counts.counts) as (keyof RunCounts["counts"])[]);
  const numbers = statuses.map((status) => counts.counts[status as keyof RunCounts["counts"]] ?? 0);
  const isCut = numbers.some((number) => number >= counts.upTo);
  return count(numbers.reduce((sum, number) => sum + number, 0)) + (isCut ? "+" : "");
}

function matchCount(filter: Filter, counts: RunCounts | undefined, loaded: number, hasMore: boolean): string {
  if (counts !== undefined && isCounted(filter)) return countOf(filter.facet, counts);
  return count(loaded) + (hasMore ? "+" : "");
}

function Facets({ filter, counts }: { readonly filter: Filter; readonly counts: RunCounts | undefined }): JSX.Element {
  return (
    <nav class="facets" aria-label="Status">
      {FACETS.filter(
        (facet) =>
          facet.rare !== true || facet === filter.facet || (counts !== undefined && countOf(facet, counts) !== "0"),
      ).map((facet) => (
        <a
          key={facet.name}
          href={hrefWith({ status: facet.name, after: "" })}
          aria-current={facet === filter.facet ? "true" : undefined}
        >
          {facet.glyph !== undefined && <StatusGlyph status={facet.glyph} />}
          {facet.label}
          {counts !== undefined && <span class="n">{countOf(facet, counts)}</span>}
        </a>
      ))}
    </nav>
  );
}

function Filters(props: {
  readonly filter: Filter;
  readonly matching: string;
  readonly onFilter: () => void;
}): JSX.Element {
  const { filter } = props;
  const drop = (name: string) => (): void => setQuery({ [name]: "", after: "" }, { push: true });
  const texts = ["definition", "q", "errorCode", "kind", "parent"] as const;
  const LABELS = { definition: "definition", q: "id contains", errorCode: "error", kind: "kind", parent: "child of" };
  return (
    <div class="filters">
      {filter.age !== undefined && <Chip name="started" value={filter.age.label} onRemove={drop("started")} />}
      {filter.tags.map((tag) => (
        <Chip
          key={tag}
          name="tag"
          value={tag}
          onRemove={() => setQuery({ tag: filter.tags.filter((other) => other !== tag), after: "" }, { push: true })}
        />
      ))}
      {texts
        .filter((name) => filter[name] !== "")
        .map((name) => (
          <Chip key={name} name={LABELS[name]} value={filter[name]} onRemove={drop(name)} />
        ))}
      <Button kind="ghost" small icon="plus" keys="f" onClick={props.onFilter}>
        Filter
      </Button>
      <span class="grow" />
      <span class="muted only-l">{props.matching} match</span>
      <Button small icon="term" class="only-l" keys="c" onClick={() => copyText(listCommand(filter))}>
        Copy as CLI
      </Button>
    </div>
  );
}

interface RunTableProps {
  readonly list: RunList;
  readonly current: string;
  readonly selected: ReadonlySet<string>;
  readonly canSelect: boolean;
  readonly onSelect: (id: string, range: boolean) => void;
  readonly onAll: (on: boolean) => void;
}

function RunTable({ list, current, selected, canSelect, onSelect, onAll }: RunTableProps): JSX.Element {
  const rows = list.rows.value;
  const isAll = rows.length > 0 && rows.every((row) => selected.has(row.id));
  if (list.problem.value !== undefined) {
    return (
      <div class="state" role="alert">
        <h2>The server refused the list</h2>
        <p>{list.problem.value.detail}</p>
      </div>
    );
  }
  if (rows.length === 0 && !list.loading.value) {
    return (
      <div class="state">
        <h2>No run matches</h2>
        <p>
          {isNarrowed(list.filter)
            ? "No run of the store matches all these conditions."
            : `No run is ${list.filter.facet.label.toLowerCase()}.`}
        </p>
        <a class="link" href={href("/", { status: "all" })}>
          Show all runs
        </a>
      </div>
    );
  }
  return (
    <>
      <table class="tbl" aria-busy={list.loading.value}>
        <thead>
          <tr>
            <th class="c-x">
              {canSelect && (
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={isAll}
                  ref={(element) => {
                    if (element !== null) element.indeterminate = selected.size > 0 && !isAll;
                  }}
                  onChange={(event) => onAll(event.currentTarget.checked)}
                />
              )}
              {!canSelect && <span class="vh">Selection</span>}
            </th>
            <th class="c-st">Status</th>
            <th class="c-id">Run</th>
            <th class="c-why">Now, or why it is not progressing</th>
            <th class="c-att">Attempts</th>
            <th class="num c-start">Started</th>
            <th class="num c-dur">Duration</th>
            <th class="num c-cost">Cost</th>
          </tr>
        </thead>
        <tbody
          onClick={(event) => {
            const row = (event.target as Element).closest("tr")?.dataset["run"];
            if (row !== undefined) lastOpened = row;
          }}
        >
          {rows.map((row) => (
            <RunRow
              key={row.id}
              row={row}
              isCurrent={row.id === current}
              isSelected={selected.has(row.id)}
              canSelect={canSelect}
              onSelect={onSelect}
            />
          ))}
        </tbody>
      </table>
      <More list={list} />
    </>
  );
}

/** Loads the next rows when it comes into view; after the most rows it is a link to a page of older ones. */
function More({ list }: { readonly list: RunList }): JSX.Element | null {
  const element = useRef<HTMLDivElement>(null);
  const next = list.next.value;
  const isFull = list.rows.value.length >= MOST_ROWS;
  useEffect(() => {
    if (element.current === null || isFull) return undefined;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) void list.more();
    });
    observer.observe(element.current);
    return () => observer.disconnect();
  }, [list, next, isFull]);
  const isLater = param("after") !== "";
  if (next === undefined && !isLater) return null;
  return (
    <div class="more" ref={element}>
      {isLater && (
        <a class="link" href={hrefWith({ after: "" })}>
          Newest runs
        </a>
      )}
      {next !== undefined &&
        (isFull ? (
          <a class="link" href={hrefWith({ after: next })}>
            Older runs
          </a>
        ) : (
          <Button small onClick={() => list.more()}>
            Load more
          </Button>
        ))}
    </div>
  );
}
