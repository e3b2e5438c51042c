// Dialogs: the browser's own `<dialog>`, which keeps the focus inside and closes with Escape.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { Icon } from "./icon.tsx";
import { Button } from "./controls.tsx";

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  readonly footer?: ComponentChildren;
  readonly wide?: boolean;
  readonly onSubmit?: () => unknown;
}

export function Dialog({ title, onClose, children, footer, wide = false, onSubmit }: DialogProps): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const own = dialog.current!;
    own.showModal();
    return () => {
      own.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={wide ? "wide" : ""}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <form
        method="dialog"
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <header>
          <h2 id="dialog-title">{title}</h2>
          <span class="grow" />
          <button type="button" class="btn ghost sq sm" aria-label="Close" onClick={onClose}>
            <Icon name="x" />
          </button>
        </header>
        <div class="dialog-body">{children}</div>
        {footer !== undefined && <footer>{footer}</footer>}
      </form>
    </dialog>
  );
}

interface Question {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly confirm: string;
  readonly danger?: boolean;
  /** Asks for a reason, which is kept with the run. */
  readonly reason?: boolean;
  readonly command?: (reason: string) => string;
  readonly run: (reason: string) => Promise<unknown>;
}

const question = signal<Question | undefined>(undefined);

/** Asks before something that cannot be undone. */
export function ask(one: Question): void {
  question.value = one;
}

export function Questions(): JSX.Element | null {
  const one = question.value;
  if (one === undefined) return null;
  return <QuestionDialog key={one.title} {...one} />;
}

function QuestionDialog(one: Question): JSX.Element {
  const [reason, setReason] = useState("");
  const close = (): void => {
    question.value = undefined;
  };
  const run = async (): Promise<void> => {
    await one.run(reason);
    close();
  };
  return (
    <Dialog
      title={one.title}
      onClose={close}
      footer={
        <>
          {one.command !== undefined && <code class="muted cut grow">{one.command(reason)}</code>}
          <Button onClick={close}>Keep it as it is</Button>
          <Button kind={one.danger === true ? "danger" : "primary"} class="solid" acts onClick={run}>
            {one.confirm}
          </Button>
        </>
      }
    >
      <p>{one.text}</p>
      {one.reason === true && (
        <label class="field">
          <span class="eyebrow">Reason, kept with the run</span>
          <input value={reason} onInput={(event) => setReason(event.currentTarget.value)} maxLength={500} />
        </label>
      )}
    </Dialog>
  );
}
