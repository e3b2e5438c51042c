// Limit dialog: replaces the limits of a queue. Empty means: no limit.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { QueueBody, QueueLimitsBody } from "../../../../src/contract/queue.ts";
import { at, post } from "../../api.ts";
import { Button } from "../../components/controls.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { toast } from "../../components/toast.tsx";
import { limitCommand } from "./queue-figures.ts";

interface LimitDialogProps {
  readonly queue: QueueBody;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const UNITS = [
  ["1000", "second"],
  ["60000", "minute"],
  ["3600000", "hour"],
] as const;

export function LimitDialog({ queue, onClose, onDone }: LimitDialogProps): JSX.Element {
  const { limits } = queue;
  const [concurrency, setConcurrency] = useState(String(limits.concurrency ?? ""));
  const [rate, setRate] = useState(String(limits.rate?.limit ?? ""));
  const [per, setPer] = useState(String(limits.rate?.per ?? 60_000));
  const [keyConcurrency, setKeyConcurrency] = useState(String(limits.perKey?.concurrency ?? ""));
  const [reason, setReason] = useState("");
  const perKey = {
    ...(keyConcurrency !== "" && { concurrency: Number(keyConcurrency) }),
    ...(limits.perKey?.rate !== undefined && { rate: limits.perKey.rate }),
  };
  const next: QueueLimitsBody = {
    ...(concurrency !== "" && { concurrency: Number(concurrency) }),
    ...(rate !== "" && { rate: { limit: Number(rate), per: Number(per) } }),
    ...(Object.keys(perKey).length > 0 && { perKey }),
  };
  const save = async (): Promise<void> => {
    await post(at`/v1/queues/${queue.name}/limit`, { limits: next, ...(reason !== "" && { reason }) });
    toast({ tone: "good", text: `The limits of ${queue.name} hold for all workers now.` });
    onDone();
    onClose();
  };
  return (
    <Dialog
      title={`Limits of ${queue.name}`}
      onClose={onClose}
      footer={
        <>
          <code class="muted cut grow">{limitCommand(queue.name, next)}</code>
          <Button onClick={onClose}>Keep them</Button>
          <Button kind="primary" acts onClick={save}>
            Set the limits
          </Button>
        </>
      }
    >
      <p class="soft">
        All limits are replaced, for all workers at once, until an engine that declares other limits starts.
      </p>
      <NumberField label="At once, over all workers" value={concurrency} onInput={setConcurrency} />
      <div class="two">
        <NumberField label="Starts per time" value={rate} onInput={setRate} />
        <label class="field">
          <span class="eyebrow">Time</span>
          <select value={per} onChange={(event) => setPer(event.currentTarget.value)}>
            {UNITS.some(([ms]) => ms === per) ? null : <option value={per}>{per} ms</option>}
            {UNITS.map(([ms, word]) => (
              <option key={ms} value={ms}>
                {word}
              </option>
            ))}
          </select>
        </label>
      </div>
      <NumberField label="At once for each key" value={keyConcurrency} onInput={setKeyConcurrency} />
      <label class="field">
        <span class="eyebrow">Reason, for the log of the server</span>
        <input value={reason} maxLength={1000} onInput={(event) => setReason(event.currentTarget.value)} />
      </label>
    </Dialog>
  );
}

function NumberField(props: {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
}): JSX.Element {
  return (
    <label class="field">
      <span class="eyebrow">{props.label}</span>
      <input
        type="number"
        min="1"
        step="1"
        placeholder="no limit"
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </label>
  );
}
