// No runs yet: the first five minutes of a new user. It starts the first run, or shows the commands that do.

import type { JSX } from "preact";
import type { DefinitionBody } from "../../../../src/contract/definition.ts";
import type { WorkerBody } from "../../../../src/contract/queue.ts";
import { Button, Command } from "../../components/controls.tsx";
import { Brand } from "../../components/icon.tsx";
import { plural } from "../../format.ts";
import { can, site } from "../../site.ts";
import { StartForm, startable } from "./start-form.tsx";

interface EmptyProps {
  readonly definitions: readonly DefinitionBody[];
  readonly workers: readonly WorkerBody[];
}

export function NoRuns({ definitions, workers }: EmptyProps): JSX.Element {
  const alive = workers.filter((worker) => worker.alive).length;
  const offered = startable(definitions);
  const first = offered[0]?.name ?? "checkout";
  return (
    <section class="card">
      <div class="state">
        <Brand size={44} />
        <h2>No runs yet</h2>
        <p>
          {workersText(alive, definitions.length)}{" "}
          {offered.length > 0 && can("operator")
            ? "Start a run here, or from your shell."
            : "Start a run from your shell."}{" "}
          It appears in this list as soon as the store has committed it.
        </p>
        <div class="start">
          {offered.length > 0 && can("operator") ? (
            <StartForm definitions={definitions} chosen={first} short>
              {({ fields, submit, name }) => (
                <section class="card">
                  <h3 class="card-title">From this page</h3>
                  {fields}
                  <Button kind="primary" icon="play" acts onClick={submit}>
                    Start {name}
                  </Button>
                </section>
              )}
            </StartForm>
          ) : (
            <section class="card">
              <h3 class="card-title">From nothing</h3>
              <span class="eyebrow">Make a small project</span>
              <Command text="reprise init my-app" />
              <span class="eyebrow">Run its worker and this page</span>
              <Command text="reprise dev app.ts" />
            </section>
          )}
          <section class="card">
            <h3 class="card-title">From your shell</h3>
            <span class="eyebrow">Start it and leave</span>
            <Command text={`reprise run app.ts ${first} '{}' --id first-run --detach`} />
            <span class="eyebrow">Watch it</span>
            <Command text="reprise show first-run --watch" />
            <span class="eyebrow">From your program</span>
            <div class="code" tabIndex={0} role="region" aria-label="From your program">
              await engine.<span class="n">start</span>({first}, input)
            </div>
          </section>
        </div>
        <p class="muted">
          Expected runs? No filter is set, and the store is{" "}
          <b>
            {site.value?.name} · {site.value?.store}
          </b>
          . Another store: <code>reprise serve --store …</code>
        </p>
      </div>
    </section>
  );
}

function workersText(alive: number, definitions: number): string {
  if (alive === 0) return "No worker is connected.";
  const workers = alive === 1 ? "One worker is" : `${plural(alive, "worker")} are`;
  return `${workers} connected and ${alive === 1 ? "has" : "have"} registered ${plural(definitions, "definition")}.`;
}
