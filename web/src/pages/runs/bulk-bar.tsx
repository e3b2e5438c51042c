// Bulk bar: actions on the selected runs. Each asks first, with the counts of a dry run.

import type { JSX } from "preact";
import { at, post } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, copyText } from "../../components/controls.tsx";
import { ask } from "../../components/dialog.tsx";
import { toast } from "../../components/toast.tsx";
import { plural } from "../../format.ts";
import { can } from "../../site.ts";
import { selectionOf, type Filter } from "./filter.ts";

export type BulkAction = "cancel" | "pause" | "resume" | "retry";

interface BulkAnswer {
  readonly count: number;
  readonly skipped: number;
  readonly more?: boolean;
}

/** The selected runs: some ids, or everything that the filter matches. */
export type Selection = { readonly ids: readonly string[] } | { readonly filter: Filter };

const WORDS: Readonly<Record<BulkAction, { readonly verb: string; readonly done: string; readonly text: string }>> = {
  retry: {
    verb: "Retry",
    done: "Retried",
    text: "Failed steps run again with the current code; committed results are kept.",
  },
  pause: { verb: "Pause", done: "Paused", text: "No new steps start; steps that are running may finish." },
  resume: { verb: "Resume", done: "Resumed", text: "The runs continue with the current code." },
  cancel: {
    verb: "Cancel",
    done: "Requested the cancellation of",
    text: "The code of each run can clean up first. A canceled run does not continue.",
  },
};

async function apply(action: BulkAction, selection: Selection, dryRun: boolean, reason = ""): Promise<BulkAnswer> {
  const filter = "ids" in selection ? { ids: selection.ids } : selectionOf(selection.filter);
  if (can("admin")) {
    return post<BulkAnswer>("/v1/runs/bulk", { action, filter, dryRun, ...(reason !== "" && { reason }) });
  }
  // An operator has no bulk operation: the selected runs one by one.
  const ids = "ids" in selection ? selection.ids : [];
  if (dryRun) return { count: ids.length, skipped: 0 };
  let done = 0;
  for (const id of ids) {
    const isDone = await post(at`/v1/runs/${id}/` + action, { ...(reason !== "" && { reason }) }).then(
      () => true,
      () => false,
    );
    if (isDone) done += 1;
  }
  return { count: done, skipped: ids.length - done };
}

/** Asks, with the counts of a dry run, and does it. */
export async function askBulk(action: BulkAction, selection: Selection, onDone: () => void): Promise<void> {
  const planned = await apply(action, selection, true);
  const { verb, done, text } = WORDS[action];
  const number = `${plural(planned.count, "run")}${planned.more === true ? " or more" : ""}`;
  if (planned.count === 0) {
    toast({ tone: "info", text: `${verb} applies to none of the selected runs.` });
    return;
  }
  ask({
    title: `${verb} ${number}?`,
    text:
      planned.skipped > 0
        ? `${text} ${plural(planned.skipped, "selected run")} ${planned.skipped === 1 ? "is" : "are"} skipped: the action does not apply.`
        : text,
    confirm: `${verb} ${number}`,
    danger: action === "cancel",
    reason: action === "cancel",
    ...("ids" in selection && { command: () => bulkCommand(action, selection.ids) }),
    run: async (reason) => {
      const answer = await apply(action, selection, false, reason);
      toast({ tone: "good", text: `${done} ${plural(answer.count, "run")}.` });
      onDone();
    },
  });
}

export function bulkCommand(action: string, ids: readonly string[]): string {
  return command(action, ...ids);
}

interface BulkBarProps {
  readonly selection: Selection;
  readonly selected: string;
  readonly selectAll: { readonly label: string; readonly run: () => void } | undefined;
  readonly actions: readonly BulkAction[];
  readonly onDone: () => void;
}

const ICONS = { retry: "retry", pause: "pause", resume: "play", cancel: "stop" } as const;

export function BulkBar({ selection, selected, selectAll, actions, onDone }: BulkBarProps): JSX.Element {
  return (
    <div class="bulk" role="toolbar" aria-label="Selected runs">
      <b class="strong nowrap">{selected}</b>
      {selectAll !== undefined && (
        <Button kind="ghost" small class="only-l" onClick={selectAll.run}>
          {selectAll.label}
        </Button>
      )}
      <span class="sep only-l" />
      {actions.map((action) => (
        <Button
          key={action}
          small
          acts
          icon={ICONS[action]}
          {...(action === "cancel" && { kind: "danger" as const })}
          {...(action === "retry" && { keys: "r" })}
          {...(action === "pause" && { keys: "p" })}
          onClick={() => askBulk(action, selection, onDone)}
        >
          {WORDS[action].verb}
        </Button>
      ))}
      {"ids" in selection && (
        <Button
          small
          class="only-l"
          icon="term"
          onClick={() => copyText(bulkCommand(actions[0] ?? "show", selection.ids))}
        >
          Copy as CLI
        </Button>
      )}
      <Button kind="ghost" small icon="x" label="Clear the selection" onClick={onDone} />
    </div>
  );
}
