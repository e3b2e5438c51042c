// Budget panel: a call that waits for the budget of its run: what was paid, how much is added, the reason, the same answer as a command.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { CostBody, OpenPromiseBody } from "../../../../src/contract/run.ts";
import { now } from "../../clock.ts";
import { Button, Command } from "../../components/controls.tsx";
import { shortTime, tickingDuration } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { href, runPath } from "../../router.ts";
import { can } from "../../site.ts";
import { decide } from "./decide.ts";
import { booksOf, commandOf, DIMENSIONS, missingCost, textOfPromise } from "./promise-text.ts";

interface BudgetPanelProps {
  readonly promise: OpenPromiseBody;
  readonly onClose: () => void;
  readonly onDecided: () => void;
}

export function BudgetPanel({ promise, onClose, onDecided }: BudgetPanelProps): JSX.Element {
  const [add, setAdd] = useState<CostBody>(missingCost(promise.show));
  const [reason, setReason] = useState("");
  const { title, why } = textOfPromise(promise);
  const { cap } = booksOf(promise.show);
  const answer = { value: add };
  const isEmpty = Object.keys(add).length === 0;
  const raise = (): void => {
    if (isEmpty) return;
    decide("approve", [{ promise, answer }], reason);
    onDecided();
  };
  const decline = (): void => {
    decide("reject", [{ promise, answer: { reject: reason } }], reason);
    onDecided();
  };
  useKeys("This budget", [
    { keys: "Mod+enter", label: "raise by this amount", run: raise, when: () => can("operator") },
  ]);
  return (
    <aside class="card ap-panel" aria-label={title}>
      <header>
        <h2 class="grow any">{title}</h2>
        <Button kind="ghost" small icon="x" label="Close the panel" onClick={onClose} />
      </header>
      <section>
        <h3>What the run pays</h3>
        <p class="any">{why}</p>
        <dl class="kv asked">
          <dt>Run</dt>
          <dd class="any">
            <a class="link mono" href={href(runPath(promise.run))}>
              {promise.run}
            </a>{" "}
            <span class="muted">waits at {promise.key}</span>
          </dd>
          <dt>Open since</dt>
          <dd>
            {shortTime(promise.createdAt, now.value)}, for {tickingDuration(now.value - Date.parse(promise.createdAt))}
          </dd>
        </dl>
      </section>
      {can("operator") && (
        <section>
          {DIMENSIONS.filter((one) => cap[one] !== undefined).map((one) => (
            <label key={one} class="field">
              <span class="eyebrow">Add {one}</span>
              <input
                type="number"
                class="text"
                min={0}
                step="any"
                value={add[one]}
                onInput={({ currentTarget: { valueAsNumber: more } }) => {
                  const others = Object.entries(add).filter(([name]) => name !== one);
                  setAdd(Object.fromEntries(more > 0 ? [...others, [one, more]] : others));
                }}
              />
            </label>
          ))}
          <label class="field">
            <span class="eyebrow">Reason, kept in the journal</span>
            <input
              class="text"
              maxLength={1000}
              value={reason}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
          </label>
          <div class="row row-w answers">
            <Button kind="primary" acts keys="Mod+enter" disabled={isEmpty} onClick={raise}>
              Raise
            </Button>
            <Button acts keys="Shift+A" onClick={decline}>
              Decline
            </Button>
          </div>
          <p class="muted small">
            Declined, the calls that wait throw <code>BUDGET_REACHED</code>.
          </p>
        </section>
      )}
      <section>
        <h3>Same answer from a shell</h3>
        <Command text={commandOf(promise, answer, reason)} />
      </section>
    </aside>
  );
}
