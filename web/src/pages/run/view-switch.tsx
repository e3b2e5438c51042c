// The buttons that choose the view of a run; every view puts them into its header.

import type { JSX } from "preact";
import type { RunDetail } from "../../../../src/contract/run.ts";
import { param, setQuery } from "../../router.ts";
import { RUN_VIEWS, type RunView } from "./views.ts";

export function viewsOf(run: RunDetail): readonly RunView[] {
  return RUN_VIEWS.filter(({ shownFor }) => shownFor?.(run) ?? true);
}

export function currentView(run: RunDetail): RunView {
  const views = viewsOf(run);
  return views.find(({ name }) => name === param("view")) ?? views[0]!;
}

export function ViewSwitch({ run }: { readonly run: RunDetail }): JSX.Element {
  const views = viewsOf(run);
  const current = currentView(run);
  return (
    <span class="seg" role="group" aria-label="View">
      {views.map((view) => (
        <button
          key={view.name}
          type="button"
          aria-pressed={view === current}
          onClick={() => setQuery({ view: view === views[0] ? "" : view.name }, { push: true })}
        >
          {typeof view.label === "string" ? view.label : view.label(run)}
        </button>
      ))}
    </span>
  );
}
