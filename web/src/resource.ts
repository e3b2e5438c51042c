// Resource: a value of the API that a page shows, kept while it is loaded again. What was read before appears at once, also after Back.

import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { getIfChanged, Problem, apiUrl } from "./api.ts";
import { isStale, live, onChange, type LiveEvent } from "./live.ts";
import type { QueryChange } from "./router.ts";

export interface Loaded<T> {
  readonly data?: T;
  readonly problem?: Problem;
  readonly loading: boolean;
}

export interface Resource<T> {
  readonly state: ReadonlySignal<Loaded<T>>;
  readonly data: T | undefined;
  readonly problem: Problem | undefined;
  readonly loading: boolean;
  readonly reload: () => Promise<void>;
}

interface Cell {
  readonly state: Signal<Loaded<any>>;
  etag?: string;
  underway?: Promise<void>;
  again?: boolean;
}

const CACHED = 60;
const cells = new Map<string, Cell>();

function cellOf(key: string): Cell {
  const known = cells.get(key);
  const cell: Cell = known ?? { state: signal<Loaded<any>>({ loading: true }) };
  cells.delete(key);
  cells.set(key, cell);
  if (cells.size > CACHED) cells.delete(cells.keys().next().value!);
  return cell;
}

/** Loads; a call while a load is under way makes one more load after it, so that the result is never older than the call. */
function load(cell: Cell, path: string, query: QueryChange): Promise<void> {
  if (cell.underway !== undefined) {
    cell.again = true;
    return cell.underway;
  }
  const once = async (): Promise<void> => {
    try {
      const fetched = await getIfChanged(path, cell.state.peek().data === undefined ? undefined : cell.etag, { query });
      if (fetched === undefined) {
        const { data } = cell.state.peek();
        if (cell.state.peek().loading || cell.state.peek().problem) cell.state.value = { data, loading: false };
        return;
      }
      if (fetched.etag === undefined) delete cell.etag;
      else cell.etag = fetched.etag;
      cell.state.value = { data: fetched.data, loading: false };
    } catch (thrown) {
      const problem = thrown instanceof Problem ? thrown : new Problem({ status: 0, detail: String(thrown) });
      const { data } = cell.state.peek();
      // During an outage the old data stay, and the page says that they are old.
      cell.state.value =
        problem.isOutage && data !== undefined ? { data, loading: false } : { data, problem, loading: false };
    }
  };
  cell.underway = (async () => {
    try {
      do {
        cell.again = false;
        await once();
      } while (isAgain(cell));
    } finally {
      delete cell.underway;
    }
  })();
  return cell.underway;
}

/** A function, because the loads between change it. */
function isAgain(cell: Cell): boolean {
  return cell.again === true;
}

export interface ResourceOptions {
  readonly query?: QueryChange;
  /** Loads again after these events. */
  readonly when?: (event: LiveEvent) => boolean;
  /** At most one load in this time, in ms. */
  readonly every?: number;
}

const EVERY_MS = 250;

/** Reads `path` while the component is shown. `undefined`: nothing to read. */
export function useResource<T>(path: string | undefined, options: ResourceOptions = {}): Resource<T> {
  const { query = {}, when, every = EVERY_MS } = options;
  const key = path === undefined ? "" : apiUrl(path, query);
  const cell = useMemo(() => (key === "" ? { state: signal<Loaded<any>>({ loading: false }) } : cellOf(key)), [key]);
  useEffect(() => {
    if (path === undefined) return undefined;
    void load(cell, path, query);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void load(cell, path, query);
      }, every);
    };
    const stop = onChange((event) => {
      if (event.kind === "reset" || event.kind === "resumed" || when?.(event) === true) soon();
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, [key]);
  const state = cell.state.value as Loaded<T>;
  return {
    state: cell.state,
    data: state.data,
    problem: state.problem,
    loading: state.loading,
    reload: () => (path === undefined ? Promise.resolve() : load(cell, path, query)),
  };
}

/** When the data that the page shows were true. */
export function asOf(): number | undefined {
  return isStale.value ? live.value.asOf : undefined;
}
