// Graph view: a run of a graph or flow drawn live, a slider over its steps, the state after a step, forks and comparison.
//
// graph-view.G1. Looking at an earlier step only reads. "Back to live" is visible as long as the page looks at the past.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import type { RunPicture } from "../../../../src/contract/picture.ts";
import type { RunSummary } from "../../../../src/contract/run.ts";
import type { Timeline } from "../../../../src/contract/timeline.ts";
import { at } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button } from "../../components/controls.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { toast } from "../../components/toast.tsx";
import { showProblem } from "../../components/controls.tsx";
import { count } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { useResource } from "../../resource.ts";
import { param, setQuery } from "../../router.ts";
import { can } from "../../site.ts";
import { StreamPanel } from "../../stream/stream-panel.tsx";
import { CallsCard } from "./calls-card.tsx";
import { CompareCard } from "./compare-card.tsx";
import { GraphCanvas, GraphTable } from "./graph-canvas.tsx";
import { forkAt, StateCard } from "./state-card.tsx";
import { namesOf, StepSlider } from "./step-slider.tsx";
import { useCheckpoints } from "./use-checkpoints.ts";
import { ViewSwitch } from "./view-switch.tsx";
import type { RunViewProps } from "./views.ts";
import "./graph-view.css";

export default function GraphView({ run }: RunViewProps): JSX.Element {
  const isGraph = run.kind === "graph";
  const timeline = useResource<Timeline>(at`/v1/runs/${run.id}/timeline`, {
    query: { limit: 1000 },
    when: ({ kind, data }) => kind === "run" && data["id"] === run.id,
    every: 300,
  });
  const { items: checkpoints, problem } = useCheckpoints(run.id, isGraph);
  const [choosing, setChoosing] = useState(false);
  const isLive = run.endedAt === undefined;
  const last = checkpoints.at(-1)?.step ?? 0;
  const asked = param("checkpoint");
  const step =
    /^\d{1,9}$/.test(asked) && checkpoints.some((one) => one.step === Number(asked)) ? Number(asked) : undefined;
  const other = param("with");
  const rows = timeline.data?.rows ?? [];
  const drawn = useResource<RunPicture>(at`/v1/runs/${run.id}/picture`, {
    query: { step },
    when: ({ kind, data }) => step === undefined && kind === "run" && data["id"] === run.id,
    every: 300,
  });
  // The last picture stays until that of another step is there.
  const shownBefore = useRef<RunPicture | undefined>(undefined);
  const picture = drawn.data ?? (drawn.problem === undefined ? shownBefore.current : undefined);
  shownBefore.current = picture;
  const running = [...new Set(checkpoints.at(-1)?.next)];

  const show = (next: number | undefined): void => setQuery({ checkpoint: next });
  const move = (by: number): void => {
    const from = checkpoints.findIndex((one) => one.step === (step ?? last));
    if (step === undefined) {
      if (by < 0 && checkpoints.length > 0) show(isLive ? last : (checkpoints[from - 1]?.step ?? last));
      return;
    }
    const next = checkpoints[from + by];
    if (next !== undefined) show(next.step);
    else if (by > 0) show(undefined);
  };
  const compareWith = (fork: RunSummary): void => setQuery({ with: fork.id }, { push: true });
  const forkHere = (): void => {
    forkAt(run.id, step ?? last, param("effects") === "recorded" ? "recorded" : "live").then((made) => {
      toast({ tone: "good", text: `Forked ${made.id}`, command: command("show", made.id) });
      compareWith(made);
    }, showProblem);
  };
  const hasSteps = (): boolean => isGraph && checkpoints.length > 0;
  useKeys("Graph", [
    { keys: "ArrowLeft", label: "step before", run: () => move(-1), when: hasSteps },
    { keys: "ArrowRight", label: "step after", run: () => move(1), when: hasSteps },
    { keys: "l", label: "back to live", run: () => show(undefined), when: hasSteps },
    { keys: "Shift+F", label: "fork here", run: forkHere, when: () => hasSteps() && can("operator") },
    { keys: "d", label: "compare with a fork", run: () => setChoosing(true), when: () => can("reader") },
    {
      keys: "s",
      label: "stream",
      run: () => document.querySelector<HTMLElement>("#stream [role=log]")?.focus(),
      when: () => run.streams.length > 0,
    },
  ]);
  const asTable = param("as") === "table";
  const viewed = step ?? last;
  const shown = checkpoints.find((one) => one.step === viewed);
  const hasAside = run.streams.length > 0 || rows.some(({ parent, kind }) => parent !== undefined && kind !== "node");
  return (
    <>
      <div class={hasAside ? "g-split" : "g-split alone"}>
        <div class="g-col">
          <section class="card" aria-label={isGraph ? "Graph" : "Flow"}>
            <header>
              <h2>{isGraph ? "Graph" : "Flow"}</h2>
              {step !== undefined && (
                <span class="tag travel-tag" role="status">
                  viewing step {count(step)} of {count(last)}
                </span>
              )}
              <span class="grow" />
              {step !== undefined && (
                <Button small icon="right" keys="l" onClick={() => show(undefined)}>
                  {isLive ? "Back to live" : "Back to the end"}
                </Button>
              )}
              <span class="seg" role="group" aria-label="Form">
                <button type="button" aria-pressed={!asTable} onClick={() => setQuery({ as: undefined })}>
                  Picture
                </button>
                <button type="button" aria-pressed={asTable} onClick={() => setQuery({ as: "table" })}>
                  Table
                </button>
              </span>
              <ViewSwitch run={run} />
            </header>
            {picture === undefined ? (
              <p class="pad muted">{drawn.problem?.detail ?? "Loading …"}</p>
            ) : asTable ? (
              <GraphTable picture={picture} />
            ) : (
              <GraphCanvas picture={picture} step={step} label={`${isGraph ? "Graph" : "Flow"} ${run.definition}`} />
            )}
          </section>
          {isGraph && checkpoints.length > 0 && (
            <section class="card" aria-label="Steps">
              <StepSlider checkpoints={checkpoints} step={step} isLive={isLive} running={running} onStep={show} />
            </section>
          )}
          {problem !== undefined && <p class="bad any">{problem.detail}</p>}
          {isGraph && shown !== undefined && (
            <StateCard key={viewed} run={run.id} step={viewed} by={namesOf(shown)} onForked={compareWith} />
          )}
          {other !== "" && (
            <CompareCard key={other} run={run} other={other} onClose={() => setQuery({ with: undefined })} />
          )}
        </div>
        {hasAside && (
          <div class="g-col">
            <StreamPanel run={run} />
            <CallsCard rows={rows} step={step} />
          </div>
        )}
      </div>
      {choosing && (
        <ChooseRun
          suggestion={run.forkOf?.run ?? ""}
          onClose={() => setChoosing(false)}
          onChoose={(id) => {
            setChoosing(false);
            setQuery({ with: id }, { push: true });
          }}
        />
      )}
    </>
  );
}

interface ChooseProps {
  readonly suggestion: string;
  readonly onClose: () => void;
  readonly onChoose: (id: string) => void;
}

function ChooseRun({ suggestion, onClose, onChoose }: ChooseProps): JSX.Element {
  const [id, setId] = useState(suggestion);
  const choose = (): void => {
    if (id.trim() !== "") onChoose(id.trim());
  };
  return (
    <Dialog
      title="Compare with another run"
      onClose={onClose}
      onSubmit={choose}
      footer={
        <Button kind="primary" type="submit">
          Compare
        </Button>
      }
    >
      <label class="field">
        <span class="eyebrow">Id of a run of the same definition, such as a fork</span>
        <input autoFocus value={id} onInput={(event) => setId(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}
