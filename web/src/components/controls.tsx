// Controls: buttons with a pending ring, commands to copy, chips, the line that opens a page.

import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { isStale } from "../live.ts";
import { keyCaps } from "../keys.ts";
import { Icon, type IconName } from "./icon.tsx";
import { toast } from "./toast.tsx";
import { Status, toneClass } from "./status.tsx";
import { Problem } from "../api.ts";

interface ButtonProps {
  readonly children?: ComponentChildren;
  readonly icon?: IconName;
  /** The key that does the same, as bound: `n`, `Shift+A`. */
  readonly keys?: string;
  readonly kind?: "primary" | "danger" | "ghost" | "travel";
  readonly small?: boolean;
  /** For a button without text. */
  readonly label?: string;
  readonly pressed?: boolean;
  readonly disabled?: boolean;
  /** It works on the store, and is off while the page is stale. */
  readonly acts?: boolean;
  readonly class?: string;
  readonly id?: string;
  readonly type?: "button" | "submit";
  readonly title?: string;
  readonly expanded?: boolean;
  /** A ring is shown until the promise settles; its refusal becomes a toast. */
  readonly onClick?: (event: MouseEvent) => unknown;
}

export function Button(props: ButtonProps): JSX.Element {
  const pending = useSignal(false);
  const { kind, small, icon, keys, label, children } = props;
  const isOff = props.disabled === true || (props.acts === true && isStale.value);
  const classes = ["btn", kind, small && "sm", children === undefined && "sq", pending.value && "pending", props.class];
  return (
    <button
      type={props.type ?? "button"}
      class={classes.filter(Boolean).join(" ")}
      id={props.id}
      title={props.title}
      disabled={isOff}
      aria-label={label}
      aria-pressed={props.pressed}
      aria-expanded={props.expanded}
      aria-busy={pending.value ? true : undefined}
      onClick={(event) => {
        if (pending.value) return;
        const result = props.onClick?.(event);
        if (!(result instanceof Promise)) return;
        pending.value = true;
        result.catch(showProblem).finally(() => (pending.value = false));
      }}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
      {keys !== undefined && keyCaps(keys).map((cap) => <kbd key={cap}>{cap}</kbd>)}
    </button>
  );
}

/** Shows why the server refused. */
export function showProblem(thrown: unknown): void {
  const problem = thrown instanceof Problem ? thrown : undefined;
  toast({
    tone: "bad",
    text: problem?.detail ?? String(thrown),
    ...(problem?.hint !== undefined && { command: problem.hint }),
  });
}

export async function copyText(text: string, what = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Browsers offer the clipboard only on https and localhost.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "vh";
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  toast({ tone: "good", text: what, command: text });
}

/** A command of the command line, with a button that copies it. */
export function Command({ text }: { readonly text: string }): JSX.Element {
  return (
    <span class="cmd">
      <span tabIndex={0} role="group" aria-label="command">
        {text}
      </span>
      <button type="button" aria-label="Copy the command" onClick={() => void copyText(text)}>
        <Icon name="copy" />
      </button>
    </span>
  );
}

/** Text with words in backquotes as code. */
export function Prose({ text }: { readonly text: string }): JSX.Element {
  return <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>;
}

interface NowLineProps {
  readonly status: string;
  /** The first words, in the color of the status. */
  readonly lead: string;
  readonly children?: ComponentChildren;
  readonly command?: string;
  readonly actions?: ComponentChildren;
  /** Behind the command. */
  readonly aside?: ComponentChildren;
  readonly alert?: boolean;
}

/** The first line of a page: what happens now, and the command that helps. */
export function NowLine(props: NowLineProps): JSX.Element {
  return (
    <div class={`now ${toneClass(props.status)}`} role={props.alert === true ? "alert" : "status"}>
      <p>
        <Status status={props.status} word={props.lead} /> {props.children}
      </p>
      {props.actions !== undefined && <span class="row acts">{props.actions}</span>}
      {(props.command !== undefined || props.aside !== undefined) && (
        <span class="row row-w whole">
          {props.command !== undefined && <Command text={props.command} />}
          {props.aside}
        </span>
      )}
    </div>
  );
}

interface ChipProps {
  readonly name: string;
  readonly value: ComponentChildren;
  readonly onRemove?: () => void;
}

export function Chip({ name, value, onRemove }: ChipProps): JSX.Element {
  return (
    <span class="chip">
      <span>{name}</span>
      <b>{value}</b>
      {onRemove !== undefined && (
        <button type="button" aria-label={`Remove the filter ${name}`} onClick={onRemove}>
          <Icon name="x" />
        </button>
      )}
    </span>
  );
}

interface MenuItem {
  readonly label: string;
  readonly icon?: IconName;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  readonly onClick: () => void;
}

/** A button that opens a list of actions. */
export function Menu({
  label,
  items,
  class: extra = "",
}: {
  readonly label: string;
  readonly items: readonly MenuItem[];
  readonly class?: string;
}): JSX.Element {
  const open = useSignal(false);
  const close = (): void => {
    open.value = false;
  };
  return (
    <span
      class={`menu ${extra}`}
      onFocusOut={(event) => {
        if (!(event.currentTarget as Element).contains(event.relatedTarget as Node | null)) close();
      }}
      onKeyDown={(event) => {
        if (!open.value) return;
        if (event.key === "Escape") {
          event.stopPropagation();
          event.preventDefault();
          close();
          event.currentTarget.querySelector("button")?.focus();
        }
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          event.preventDefault();
          const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=menuitem]")];
          const at = all.indexOf(document.activeElement as HTMLElement) + (event.key === "ArrowDown" ? 1 : -1);
          all[(at + all.length) % all.length]?.focus();
        }
      }}
    >
      <button
        type="button"
        class="btn sq"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
      >
        <Icon name="more" />
      </button>
      {open.value && (
        <div class="menu-list" role="menu" aria-label={label}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              class={item.danger === true ? "danger" : ""}
              disabled={item.disabled}
              onClick={() => {
                close();
                item.onClick();
              }}
            >
              {item.icon !== undefined && <Icon name={item.icon} />}
              {item.label}
            </button>
          ))}
        </div>
      )}
    </span>
  );
}

/** Texts for readers that do not see the page; each is read once. */
export const announcement = signal("");
