// The first line of a run: what happens now, why it does not move, and the command that helps.

import type { JSX } from "preact";
import type { RunDetail, RunNow } from "../../../../src/contract/run.ts";
import { now } from "../../clock.ts";
import { Command, NowLine, Prose } from "../../components/controls.tsx";
import { Hidden, InlineJson } from "../../components/json.tsx";
import { duration, longTime, shortTime } from "../../format.ts";
import { usePolling } from "../../polling.ts";
import { useResource } from "../../resource.ts";
import { budgetButtons } from "./budget.tsx";
import { PromiseButtons, promiseCommand, usePortSchema } from "./promise-actions.tsx";
import { shortFrame } from "./thrown-error.tsx";

const LEADS: Readonly<Record<string, string>> = {
  queued: "Queued.",
  running: "Running.",
  waiting: "Waiting.",
  paused: "Paused.",
  blocked: "Stopped.",
  determinism_violation: "Stopped: the code differs from the journal.",
  expected: "Expected.",
  completed: "Completed.",
  failed: "Failed.",
  cancelled: "Cancelled.",
  continued: "Continued in the next generation.",
};

export function RunNowLine({ run, status }: { readonly run: RunDetail; readonly status: string }): JSX.Element {
  // A request of a budget is the first reason, with the command that raises it.
  const open = run.openPromises.filter(({ kind }) => kind === "promise");
  const [promise] = open;
  const reasons = useResource<{ readonly items: readonly RunNow[] }>("/v1/reasons", {
    query: { run: [run.id] },
    when: ({ kind, data }) => kind === "run" && data["id"] === run.id,
    every: 500,
  });
  usePolling(() => run.endedAt === undefined && reasons.reload(), 2000);
  const said = reasons.data?.items[0];
  const schema = usePortSchema(run.definition, promise?.name ?? "");
  const [reason] = run.waitsFor;
  if (promise !== undefined && status === "waiting") {
    return (
      <>
        <NowLine
          status={status}
          lead="Waiting for a person."
          command={promiseCommand(promise, schema)}
          actions={<PromiseButtons run={run} promise={promise} hasKeys />}
          aside={
            promise.hidden !== undefined ? (
              <Hidden />
            ) : promise.show !== undefined ? (
              <span class="soft only-l">
                It was opened with <InlineJson value={promise.show} max={120} />
              </span>
            ) : undefined
          }
        >
          Promise <code>{promise.key === undefined ? promise.name : `${promise.name} ${promise.key}`}</code> is open
          since {shortTime(promise.createdAt, now.peek())}
          {promise.deadline !== undefined && ` and times out on ${longTime(promise.deadline, now.peek())}`}. No worker
          is held meanwhile.
        </NowLine>
        {open.length > 1 && (
          <p class="muted after-now">
            {open.length - 1} more {open.length === 2 ? "promise is" : "promises are"} open; the timeline shows them.
          </p>
        )}
      </>
    );
  }
  const others = run.waitsFor.slice(1, 3);
  // The sentence of a run that has ended starts with the word of its status.
  const sentence = reason?.text ?? said?.text ?? "";
  const word = (LEADS[status] ?? status).replace(/\.$/, "");
  const startsSame = sentence.toLowerCase().startsWith(`${word.toLowerCase()} `);
  const text = startsSame ? sentence.slice(word.length + 1) : sentence;
  const helps = reason?.next[0] ?? said?.command;
  return (
    <>
      <NowLine
        status={status}
        lead={startsSame && run.status !== "completed" ? word : (LEADS[status] ?? status)}
        {...(helps !== undefined && { command: helps })}
        actions={budgetButtons(run)}
        {...(run.error?.frames?.[0] !== undefined && {
          aside: (
            <code class="soft" title={run.error.frames.join("\n")}>
              {shortFrame(run.error.frames[0])}
            </code>
          ),
        })}
        {...(run.status === "completed" && {
          aside:
            run.hidden?.includes("output") === true ? (
              <Hidden />
            ) : run.output === undefined ? undefined : (
              <span class="soft">
                Output <InlineJson value={run.output} />
              </span>
            ),
        })}
      >
        {run.status === "completed" ? (
          `After ${duration(Date.parse(run.endedAt ?? run.createdAt) - Date.parse(run.createdAt))}.`
        ) : (
          <Prose text={text} />
        )}
      </NowLine>
      {others.map((one) => (
        <p key={one.text} class="muted after-now">
          <Prose text={one.text} /> {one.next[0] !== undefined && <Command text={one.next[0]} />}
        </p>
      ))}
    </>
  );
}
