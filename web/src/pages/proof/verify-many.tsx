// Verify many: every live run of a definition against the code of this process, one square each. Bounded, and it can be stopped.
//
// verify-many.M1. At most `AT_ONCE` requests run at once; Stop and leaving the page abort them, and start no further one.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { VerdictBody } from "../../../../src/contract/history.ts";
import type { RunSummary } from "../../../../src/contract/run.ts";
import { at, get, post, Problem } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, Command, showProblem } from "../../components/controls.tsx";
import { count, plural } from "../../format.ts";
import { hrefWith } from "../../router.ts";

const AT_ONCE = 4;
const MAX_RUNS = 1000;
const PAGE = 200;
const LIVE = ["queued", "running", "waiting", "paused", "blocked", "determinism_violation"];

interface Checked {
  readonly id: string;
  readonly state: "open" | "same" | "different" | "damaged" | "refused";
  /** The entry that differs. */
  readonly entry?: number;
  readonly text?: string;
}

interface Check {
  readonly definition: string;
  readonly runs: readonly Checked[];
  readonly more: boolean;
  readonly running: boolean;
}

const check = signal<Check | undefined>(undefined);

async function readLive(definition: string, signal: AbortSignal): Promise<{ ids: string[]; more: boolean }> {
  const ids: string[] = [];
  let after: string | undefined;
  do {
    const page: { items: readonly RunSummary[]; next?: string } = await get("/v1/runs", {
      query: { definition, status: LIVE, limit: PAGE, after },
      signal,
    });
    ids.push(...page.items.map(({ id }) => id));
    after = page.next;
  } while (after !== undefined && ids.length < MAX_RUNS);
  return { ids: ids.slice(0, MAX_RUNS), more: after !== undefined };
}

async function verifyAll(definition: string, signal: AbortSignal): Promise<void> {
  check.value = { definition, runs: [], more: false, running: true };
  const { ids, more } = await readLive(definition, signal);
  const runs: Checked[] = ids.map((id) => ({ id, state: "open" }));
  const show = (running: boolean): void => {
    check.value = { definition, runs: [...runs], more, running };
  };
  show(true);
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < runs.length && !signal.aborted) {
      const index = next;
      next += 1;
      runs[index] = await verdictOf(runs[index]!.id, signal);
      show(true);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  show(false);
}

async function verdictOf(id: string, signal: AbortSignal): Promise<Checked> {
  try {
    const verdict = await post<VerdictBody>(at`/v1/runs/${id}/verify`, {}, { signal });
    if (verdict.status === "same") return { id, state: "same" };
    return { id, state: verdict.status, entry: verdict.agreed + 1, text: verdict.differences[0]?.message ?? "" };
  } catch (thrown) {
    if (signal.aborted) return { id, state: "open" };
    return { id, state: "refused", text: thrown instanceof Problem ? thrown.detail : String(thrown) };
  }
}

export function VerifyMany({ definition }: { readonly definition: string }): JSX.Element {
  const aborter = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => aborter.current?.abort(), []);
  const own = check.value?.definition === definition ? check.value : undefined;
  const start = (): void => {
    aborter.current?.abort();
    const mine = new AbortController();
    aborter.current = mine;
    verifyAll(definition, mine.signal).catch((thrown: unknown) => {
      check.value = undefined;
      if (!mine.signal.aborted) showProblem(thrown);
    });
  };
  const stop = (): void => {
    aborter.current?.abort();
    if (own !== undefined) check.value = { ...own, running: false };
  };
  return (
    <section class="card many" aria-label={`All live runs of ${definition}`}>
      <header>
        <h2>All live runs of {definition} against this code</h2>
        <span class="muted" role="status">
          {own !== undefined && summary(own)}
        </span>
        <span class="grow" />
        {own?.running === true ? (
          <Button small icon="stop" onClick={stop}>
            Stop
          </Button>
        ) : (
          <Button small acts icon="shield" onClick={start}>
            {own === undefined ? "Verify them" : "Verify them again"}
          </Button>
        )}
      </header>
      {own !== undefined && own.runs.length > 0 && <Squares runs={own.runs} />}
      {own !== undefined && <Different runs={own.runs} />}
      <p class="muted many-note">
        {own?.more === true && `Only the newest ${count(MAX_RUNS)} runs are verified here. `}
        One square is one run. Verify the live runs before a deployment: a run that differs stops, it never takes a
        wrong step.
      </p>
      <p class="many-note">
        <Command text={`${command("verify", "--all", "--definition", definition)} --code <file>`} />
      </p>
    </section>
  );
}

function summary({ runs, running }: Check): string {
  const counts = Map.groupBy(runs, ({ state }) => state);
  const many = (state: Checked["state"]): number => counts.get(state)?.length ?? 0;
  if (runs.length === 0) return running ? "reading the live runs" : "there is no live run";
  const differ = many("different") + many("damaged");
  const parts = [
    ...(running ? [`${count(runs.length - many("open"))} of ${count(runs.length)} verified`] : []),
    `${count(many("same"))} same`,
    ...(differ > 0 ? [`${count(differ)} differ${sameEntry(runs)}`] : []),
    ...(many("refused") > 0 ? [`${count(many("refused"))} not verified`] : []),
  ];
  return parts.join(" · ");
}

/** Where all of them differ, if it is one place. */
function sameEntry(runs: readonly Checked[]): string {
  const entries = new Set(runs.filter(({ state }) => state === "different").map(({ entry }) => entry));
  return entries.size === 1 ? ` at entry ${[...entries][0]}` : "";
}

const CLASSES: Readonly<Record<Checked["state"], string>> = {
  open: "o",
  same: "",
  different: "d",
  damaged: "b",
  refused: "r",
};

function Squares({ runs }: { readonly runs: readonly Checked[] }): JSX.Element {
  const same = runs.filter(({ state }) => state === "same").length;
  return (
    <div class="squares" role="img" aria-label={`${plural(runs.length, "live run")}, ${same} agree`}>
      {runs.map(({ id, state }) => (
        <i key={id} class={CLASSES[state]} title={`${id}: ${state}`} />
      ))}
    </div>
  );
}

function Different({ runs }: { readonly runs: readonly Checked[] }): JSX.Element | null {
  const listed = runs.filter(({ state }) => state === "different" || state === "damaged" || state === "refused");
  if (listed.length === 0) return null;
  return (
    <ul class="diff-list">
      {listed.slice(0, 20).map(({ id, state, entry, text }) => (
        <li key={id} class="any">
          <a class="link mono" href={hrefWith({ run: id })}>
            {id}
          </a>{" "}
          {state === "refused" ? "not verified" : state === "damaged" ? "damaged" : `differs at entry ${entry}`}
          {text !== undefined && text !== "" && <span class="muted"> · {text.slice(0, 300)}</span>}
        </li>
      ))}
      {listed.length > 20 && <li class="muted">and {count(listed.length - 20)} more</li>}
    </ul>
  );
}
