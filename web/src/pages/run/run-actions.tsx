// Actions of a run: what its status and the caller's role allow. What cannot be undone asks first.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { RunDetail } from "../../../../src/contract/run.ts";
import { apiUrl, at, post } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, copyText, Menu, showProblem } from "../../components/controls.tsx";
import { ask } from "../../components/dialog.tsx";
import { toast } from "../../components/toast.tsx";
import { useKeys } from "../../keys.ts";
import { isStale } from "../../live.ts";
import { go, href } from "../../router.ts";
import { can } from "../../site.ts";

type Action = "pause" | "resume" | "retry" | "cancel" | "terminate" | "delete";

/** The status that a change leads to, shown until the event of its commit arrives. */
export const expected = signal<{ readonly run: string; readonly entries: number; readonly status: string } | undefined>(
  undefined,
);

const LEADS_TO: Partial<Record<Action, string>> = { pause: "paused", resume: "queued", retry: "queued" };

async function act(run: RunDetail, action: Action, reason = ""): Promise<void> {
  const status = LEADS_TO[action];
  if (status !== undefined) expected.value = { run: run.id, entries: run.entries, status };
  try {
    await post(at`/v1/runs/${run.id}/` + action, reason === "" ? {} : { reason });
  } catch (thrown) {
    expected.value = undefined;
    throw thrown;
  }
}

export function allowed(run: RunDetail): ReadonlySet<Action> {
  const { status } = run;
  const isStopped = status === "paused" || status === "blocked" || status === "determinism_violation";
  const isMoving = status === "queued" || status === "running" || status === "waiting";
  return new Set<Action>([
    ...(isMoving ? (["pause"] as const) : []),
    ...(isStopped ? (["resume"] as const) : []),
    ...(status === "failed" ? (["retry"] as const) : []),
    ...(isStopped || isMoving ? (["cancel", "terminate"] as const) : (["delete"] as const)),
  ]);
}

function askCancel(run: RunDetail): void {
  ask({
    title: `Cancel ${run.id}?`,
    text: "Its code can clean up first: what it awaits rejects. A canceled run does not continue.",
    confirm: "Cancel the run",
    danger: true,
    reason: true,
    command: (reason) => command("cancel", run.id, ...(reason === "" ? [] : ["--reason", reason])),
    run: async (reason) => {
      await act(run, "cancel", reason);
      toast({ tone: "good", text: `Requested the cancellation of ${run.id}.` });
    },
  });
}

function askTerminate(run: RunDetail): void {
  ask({
    title: `Terminate ${run.id}?`,
    text: "It ends at once. Its code does not run again: nothing cleans up and nothing is undone.",
    confirm: "Terminate the run",
    danger: true,
    reason: true,
    command: (reason) => command("terminate", run.id, ...(reason === "" ? [] : ["--reason", reason])),
    run: (reason) => act(run, "terminate", reason),
  });
}

function askDelete(run: RunDetail): void {
  ask({
    title: `Delete ${run.id}?`,
    text: "The run, its journal and its children are removed from the store for good.",
    confirm: "Delete the run",
    danger: true,
    command: () => command("delete", run.id),
    run: async () => {
      await act(run, "delete");
      go(href("/"));
    },
  });
}

export function RunActions({ run }: { readonly run: RunDetail }): JSX.Element {
  const can_ = allowed(run);
  const isOperator = can("operator");
  const copy = (): void => void copyText(command("show", run.id));
  const quiet = (work: Promise<void>): void => void work.catch(showProblem);
  const ready = (action: Action) => (): boolean => can("operator") && allowed(run).has(action) && !isStale.value;
  useKeys("Run", [
    { keys: "p", label: "Pause", run: () => quiet(act(run, "pause")), when: ready("pause") },
    { keys: "r", label: "Retry", run: () => quiet(act(run, "retry")), when: ready("retry") },
    { keys: "c", label: "Copy as CLI", run: copy },
    { keys: "v", label: "Verify", run: () => go(href("/proof", { run: run.id })) },
  ]);
  return (
    <span class="row acts">
      {isOperator && can_.has("retry") && (
        <Button kind="primary" icon="retry" keys="r" acts onClick={() => act(run, "retry")}>
          Retry
        </Button>
      )}
      {isOperator && can_.has("resume") && (
        <Button kind="primary" icon="play" acts onClick={() => act(run, "resume")}>
          Resume
        </Button>
      )}
      {isOperator && can_.has("pause") && (
        <Button icon="pause" keys="p" acts onClick={() => act(run, "pause")}>
          Pause
        </Button>
      )}
      {isOperator && can_.has("cancel") && (
        <Button kind="danger" icon="stop" acts onClick={() => askCancel(run)}>
          Cancel
        </Button>
      )}
      <Button icon="term" keys="c" onClick={copy}>
        Copy as CLI
      </Button>
      <Menu
        label="More actions"
        items={[
          { label: "Verify", icon: "shield", onClick: () => go(href("/proof", { run: run.id })) },
          ...(can("reader")
            ? [
                {
                  label: "Download the journal",
                  icon: "down" as const,
                  onClick: () => location.assign(apiUrl(at`/v1/runs/${run.id}/journal.jsonl`)),
                },
              ]
            : []),
          ...(can("admin") && can_.has("terminate")
            ? [
                {
                  label: "Terminate…",
                  icon: "stop" as const,
                  danger: true,
                  disabled: isStale.value,
                  onClick: () => askTerminate(run),
                },
              ]
            : []),
          ...(can("admin") && can_.has("delete")
            ? [
                {
                  label: "Delete…",
                  icon: "x" as const,
                  danger: true,
                  disabled: isStale.value,
                  onClick: () => askDelete(run),
                },
              ]
            : []),
        ]}
      />
    </span>
  );
}
