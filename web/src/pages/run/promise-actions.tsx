// Answers to a promise of the run: Approve and Reject, held for 5 s with Undo; or a value that the person writes.

import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { templateOf } from "../../../../src/contract/approval-answer.ts";
import type { DefinitionBody } from "../../../../src/contract/definition.ts";
import type { OpenPromiseBody, RunDetail } from "../../../../src/contract/run.ts";
import { at } from "../../api.ts";
import { Button } from "../../components/controls.tsx";
import { Dialog } from "../../components/dialog.tsx";
import { textOf } from "../../components/json.tsx";
import { useKeys } from "../../keys.ts";
import { isStale } from "../../live.ts";
import { useResource } from "../../resource.ts";
import { can } from "../../site.ts";
import { answerFor, decide, progress } from "../approvals/decide.ts";
import { commandOf, idOf, type Answer } from "../approvals/promise-text.ts";

/** The JSON Schema of the port's value, if the server knows it. */
export function usePortSchema(definition: string, port: string): unknown {
  const { data } = useResource<DefinitionBody>(at`/v1/definitions/${definition}`);
  return data?.ports.find(({ name }) => name === port)?.schema;
}

/** The command that gives the usual answer. */
export function promiseCommand(promise: OpenPromiseBody, schema: unknown): string {
  return commandOf(promise, answerFor(schema, "approve", "") ?? { value: templateOf(schema) }, "");
}

interface PromiseButtonsProps {
  readonly run: RunDetail;
  readonly promise: OpenPromiseBody;
  readonly small?: boolean;
  /** Binds A and Shift+A to this promise. */
  readonly hasKeys?: boolean;
}

export function PromiseButtons({
  run,
  promise,
  small = false,
  hasKeys = false,
}: PromiseButtonsProps): JSX.Element | null {
  const schema = usePortSchema(run.definition, promise.name);
  const dialog = useSignal<"approve" | "reject" | undefined>(undefined);
  const state = progress.value.get(idOf(promise));
  const answer = answerFor(schema, "approve", "");
  const approve = (): void => {
    if (answer === undefined) dialog.value = "approve";
    else decide("approve", [{ promise, answer }], "");
  };
  const reject = (): void => {
    dialog.value = "reject";
  };
  const isFree = (): boolean =>
    hasKeys && can("approver") && !isStale.value && progress.value.get(idOf(promise)) === undefined;
  useKeys(`Promise ${promise.name}`, [
    { keys: "a", label: "Approve", run: approve, when: isFree, ...(!hasKeys && { hidden: true as const }) },
    { keys: "Shift+A", label: "Reject", run: reject, when: isFree, ...(!hasKeys && { hidden: true as const }) },
  ]);
  if (!can("approver")) return null;
  if (state !== undefined) {
    const word = state.decision === "approve" ? "Approved" : "Rejected";
    return (
      <span class="st s-waiting pending">
        {word}, {state.state === "held" ? "sent in a moment" : state.state === "sending" ? "sending" : "sent"}
      </span>
    );
  }
  return (
    <>
      <Button kind="primary" small={small} acts onClick={approve} {...(hasKeys && { keys: "a" })}>
        {answer === undefined ? "Answer…" : "Approve"}
      </Button>
      <Button small={small} acts onClick={reject} {...(hasKeys && { keys: "Shift+A" })}>
        {small ? "Reject" : "Reject…"}
      </Button>
      {dialog.value !== undefined && (
        <AnswerDialog
          promise={promise}
          schema={schema}
          decision={dialog.value}
          onClose={() => (dialog.value = undefined)}
        />
      )}
    </>
  );
}

interface AnswerDialogProps {
  readonly promise: OpenPromiseBody;
  readonly schema: unknown;
  readonly decision: "approve" | "reject";
  readonly onClose: () => void;
}

function AnswerDialog({ promise, schema, decision, onClose }: AnswerDialogProps): JSX.Element {
  const reason = useSignal("");
  const value = useSignal(textOf(templateOf(schema)));
  const issue = useSignal("");
  const isReject = decision === "reject";
  const read = (): Answer | undefined => {
    if (isReject) return answerFor(schema, "reject", reason.value);
    try {
      return { value: JSON.parse(value.value) as unknown };
    } catch {
      return undefined;
    }
  };
  const send = (): void => {
    const answer = read();
    if (answer === undefined) {
      issue.value = "The value is no JSON.";
      return;
    }
    decide(decision, [{ promise, answer }], reason.value);
    onClose();
  };
  const answer = read();
  return (
    <Dialog
      title={isReject ? `Reject ${promise.name}?` : `Answer ${promise.name}`}
      onClose={onClose}
      onSubmit={send}
      footer={
        <>
          {answer !== undefined && <code class="muted cut grow">{commandOf(promise, answer, reason.value)}</code>}
          <Button onClick={onClose}>Not now</Button>
          <Button type="submit" kind={isReject ? "danger" : "primary"} class="solid" acts>
            {isReject ? "Reject" : "Answer"}
          </Button>
        </>
      }
    >
      {!isReject && (
        <label class="field">
          <span class="eyebrow">Value, as JSON</span>
          <textarea
            rows={5}
            spellcheck={false}
            autoFocus
            value={value.value}
            onInput={(event) => (value.value = event.currentTarget.value)}
          />
          {issue.value !== "" && <span class="issue">{issue.value}</span>}
        </label>
      )}
      <label class="field">
        <span class="eyebrow">Reason, kept with the run</span>
        <input
          autoFocus={isReject}
          value={reason.value}
          maxLength={500}
          onInput={(event) => (reason.value = event.currentTarget.value)}
        />
      </label>
    </Dialog>
  );
}
