// Filter: which runs the page shows, read from the address; as a query of the API, as a test for live events, and as a command.

import type { RunStatus } from "../../../../src/kernel/index.ts";
import type { RunSummary } from "../../../../src/contract/run.ts";
import { command } from "../../cli.ts";
import { param, params, type QueryChange } from "../../router.ts";
import { now } from "../../clock.ts";

export interface Facet {
  /** The value of `status` in the address; "" is the first. */
  readonly name: string;
  readonly label: string;
  /** The status whose shape the tab shows. */
  readonly glyph?: string;
  /** Absent: every status. */
  readonly statuses?: readonly RunStatus[];
  /** Shown only while there is such a run. */
  readonly rare?: true;
}

const UNFINISHED: readonly RunStatus[] = [
  "queued",
  "running",
  "waiting",
  "paused",
  "blocked",
  "determinism_violation",
  "expected",
  "failed",
  "cancelled",
];

export const FACETS: readonly Facet[] = [
  { name: "", label: "Not completed", statuses: UNFINISHED },
  { name: "running", label: "Running", glyph: "running", statuses: ["running"] },
  { name: "waiting", label: "Waiting", glyph: "waiting", statuses: ["waiting", "expected"] },
  { name: "queued", label: "Queued", glyph: "queued", statuses: ["queued"] },
  { name: "paused", label: "Paused", glyph: "paused", statuses: ["paused"], rare: true },
  { name: "failed", label: "Failed", glyph: "failed", statuses: ["failed"] },
  { name: "stopped", label: "Stopped", glyph: "stopped", statuses: ["blocked", "determinism_violation"] },
  { name: "cancelled", label: "Cancelled", glyph: "cancelled", statuses: ["cancelled"] },
  { name: "completed", label: "Completed", glyph: "completed", statuses: ["completed", "continued"] },
  { name: "all", label: "All" },
];

export const AGES: readonly {
  readonly name: string;
  readonly label: string;
  readonly ms: number;
  readonly cli: string;
}[] = [
  { name: "1h", label: "last hour", ms: 3_600_000, cli: "1h" },
  { name: "24h", label: "last 24 h", ms: 86_400_000, cli: "24h" },
  { name: "7d", label: "last 7 days", ms: 7 * 86_400_000, cli: "7d" },
  { name: "30d", label: "last 30 days", ms: 30 * 86_400_000, cli: "30d" },
];

export interface Filter {
  readonly facet: Facet;
  readonly definition: string;
  readonly tags: readonly string[];
  readonly age: (typeof AGES)[number] | undefined;
  readonly q: string;
  readonly errorCode: string;
  readonly kind: string;
  readonly parent: string;
}

export function readFilter(): Filter {
  return {
    facet: FACETS.find(({ name }) => name === param("status")) ?? FACETS[0]!,
    definition: param("definition"),
    tags: params("tag"),
    age: AGES.find(({ name }) => name === param("started")),
    q: param("q"),
    errorCode: param("errorCode"),
    kind: param("kind"),
    parent: param("parent"),
  };
}

/** Whether anything but the tab is chosen. */
export function isNarrowed(filter: Filter): boolean {
  return (
    filter.tags.length > 0 ||
    filter.age !== undefined ||
    [filter.definition, filter.q, filter.errorCode, filter.kind, filter.parent].some((value) => value !== "")
  );
}

/** Whether `/v1/counts` counts exactly the runs of this filter. */
export function isCounted(filter: Filter): boolean {
  return (
    filter.age === undefined && [filter.q, filter.errorCode, filter.kind, filter.parent].every((value) => value === "")
  );
}

/** The filter as fields of the API. */
export function selectionOf(filter: Filter): QueryChange {
  return {
    definition: filter.definition || undefined,
    status: filter.facet.statuses,
    tag: filter.tags.length === 0 ? undefined : filter.tags,
    // Whole minutes: the address of the request stays the same for a while.
    from:
      filter.age === undefined
        ? undefined
        : new Date(Math.floor((now.peek() - filter.age.ms) / 60_000) * 60_000).toISOString(),
    q: filter.q || undefined,
    errorCode: filter.errorCode || undefined,
    kind: filter.kind || undefined,
    parent: filter.parent || undefined,
  };
}

/** Whether a run of a live event belongs into the list. `parent` and `q` of an unknown run are left to the server. */
export function matches(filter: Filter, run: RunSummary): boolean {
  return (
    (filter.facet.statuses?.includes(run.status) ?? true) &&
    (filter.definition === "" || run.definition === filter.definition) &&
    filter.tags.every((tag) => run.tags.includes(tag)) &&
    (filter.age === undefined || Date.parse(run.createdAt) >= now.peek() - filter.age.ms) &&
    (filter.q === "" || run.id.includes(filter.q)) &&
    (filter.errorCode === "" || run.errorCode === filter.errorCode) &&
    (filter.kind === "" || run.kind === filter.kind)
  );
}

/** The list as a command. */
export function listCommand(filter: Filter): string {
  const words: (string | undefined)[] = ["list"];
  const option = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== "") words.push(name, value);
  };
  option("--status", filter.facet.statuses?.join(","));
  option("--definition", filter.definition);
  option("--tag", filter.tags.join(","));
  option("--created-after", filter.age?.cli);
  option("--id-contains", filter.q);
  option("--error-code", filter.errorCode);
  option("--kind", filter.kind);
  option("--parent", filter.parent);
  return command(...words);
}
