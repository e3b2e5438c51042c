// State card: the state of a graph after a step, what the step changed, and forks from there.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { StateBody } from "../../../../src/contract/history.ts";
import type { RunSummary } from "../../../../src/contract/run.ts";
import { at, post } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, Command } from "../../components/controls.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { Hidden } from "../../components/json.tsx";
import { toast } from "../../components/toast.tsx";
import { count, plural } from "../../format.ts";
import { diffState, isEqual } from "../../graph/state-diff.ts";
import { useResource } from "../../resource.ts";
import { param, setQuery } from "../../router.ts";
import { can } from "../../site.ts";
import { DiffLines } from "./diff-lines.tsx";

interface StateCardProps {
  readonly run: string;
  readonly step: number;
  /** The nodes of the step. */
  readonly by: string;
  readonly onForked: (fork: RunSummary) => void;
}

type Effects = "live" | "recorded";

export async function forkAt(run: string, step: number, effects: Effects, patch?: object): Promise<RunSummary> {
  return post<RunSummary>(at`/v1/runs/${run}/fork`, { step, effects, ...(patch !== undefined && { patch }) });
}

export function StateCard({ run, step, by, onForked }: StateCardProps): JSX.Element {
  const { data, problem } = useResource<StateBody>(can("reader") ? at`/v1/runs/${run}/state` : undefined, {
    query: { step },
  });
  const [editing, setEditing] = useState(false);
  const all = param("state") === "all";
  const effects: Effects = param("effects") === "recorded" ? "recorded" : "live";
  const diff = data === undefined ? undefined : diffState(data.state, data.before, data.changed, all);
  const fork = async (): Promise<void> => {
    const made = await forkAt(run, step, effects);
    toast({ tone: "good", text: `Forked ${made.id} from step ${step}`, command: command("show", made.id) });
    onForked(made);
  };
  return (
    <section class="card" aria-label="State">
      <header>
        <h2>State after step {count(step)}</h2>
        <span class="muted any">{step === 0 ? "the input" : `changed by ${by} since step ${count(step - 1)}`}</span>
        <span class="grow" />
        {data !== undefined && (
          <span class="seg" role="group" aria-label="Channels">
            <button type="button" aria-pressed={!all} onClick={() => setQuery({ state: undefined })}>
              Changed {count(data.changed.length)}
            </button>
            <button type="button" aria-pressed={all} onClick={() => setQuery({ state: "all" })}>
              All {count(Object.keys(data.state).length)}
            </button>
          </span>
        )}
      </header>
      {!can("reader") ? (
        <p class="pad">
          <Hidden />
        </p>
      ) : problem !== undefined ? (
        <p class="pad bad any">{problem.detail}</p>
      ) : diff === undefined ? (
        <p class="pad muted">Loading …</p>
      ) : (
        <DiffLines
          label="State difference"
          lines={diff.lines}
          leftOut={diff.leftOut}
          empty="The step changed no channel."
        />
      )}
      {can("operator") && (
        <div class="fk">
          <Button kind="travel" icon="fork" keys="Shift+F" acts onClick={fork}>
            Fork here
          </Button>
          <Button icon="edit" acts disabled={data === undefined} onClick={() => setEditing(true)}>
            Edit state, then fork
          </Button>
          <Command
            text={command(
              "fork",
              run,
              "--step",
              String(step),
              ...(effects === "live" ? [] : ["--effects", "recorded"]),
            )}
          />
          <span class="seg" role="group" aria-label="Effects after the step">
            <button type="button" aria-pressed={effects === "live"} onClick={() => setQuery({ effects: undefined })}>
              effects live
            </button>
            <button
              type="button"
              aria-pressed={effects === "recorded"}
              onClick={() => setQuery({ effects: "recorded" })}
            >
              recorded
            </button>
          </span>
        </div>
      )}
      {editing && data !== undefined && (
        <EditState
          run={run}
          step={step}
          state={data.state}
          effects={effects}
          onClose={() => setEditing(false)}
          onForked={onForked}
        />
      )}
    </section>
  );
}

interface EditProps {
  readonly run: string;
  readonly step: number;
  readonly state: Readonly<Record<string, unknown>>;
  readonly effects: Effects;
  readonly onClose: () => void;
  readonly onForked: (fork: RunSummary) => void;
}

/** Above this the state is too large to edit as one text. */
const MAX_TEXT = 1_000_000;

function EditState({ run, step, state, effects, onClose, onForked }: EditProps): JSX.Element {
  const original = JSON.stringify(state, undefined, 2);
  const isLarge = original.length > MAX_TEXT;
  const [text, setText] = useState(isLarge ? "{}" : original);
  const { patch, issue } = patchOf(text, isLarge ? {} : state);
  const names = Object.keys(patch);
  const fork = async (): Promise<void> => {
    const made = await forkAt(run, step, effects, patch);
    toast({ tone: "good", text: `Forked ${made.id} with ${plural(names.length, "changed channel")}` });
    onClose();
    onForked(made);
  };
  return (
    <Dialog
      wide
      title={`Edit the state after step ${step}, then fork`}
      onClose={onClose}
      footer={
        <>
          <span class="muted grow">{names.length === 0 ? "nothing changed yet" : `changes ${names.join(", ")}`}</span>
          <Button onClick={onClose}>Fork nothing</Button>
          <Button kind="travel" icon="fork" acts disabled={issue !== "" || names.length === 0} onClick={fork}>
            Fork with these values
          </Button>
        </>
      }
    >
      <label class="field">
        <span class="eyebrow">{isLarge ? "The channels to replace, as JSON" : "State as JSON, by channel"}</span>
        <textarea
          rows={16}
          spellcheck={false}
          value={text}
          aria-invalid={issue !== ""}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        {issue !== "" && <span class="issue">{issue}</span>}
      </label>
      <p class="muted">The run stays as it is. The fork shares its steps up to {step} and starts with these values.</p>
    </Dialog>
  );
}

function patchOf(
  text: string,
  state: Readonly<Record<string, unknown>>,
): { readonly patch: Record<string, unknown>; readonly issue: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value))
      return { patch: {}, issue: "Expected an object with a value for each channel." };
    const changed = Object.entries(value).filter(
      ([name, one]) => !Object.hasOwn(state, name) || !isEqual(one, state[name]),
    );
    return { patch: Object.fromEntries(changed), issue: "" };
  } catch (thrown) {
    return { patch: {}, issue: `This is no JSON: ${(thrown as Error).message}` };
  }
}
