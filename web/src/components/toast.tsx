// Toasts: short messages at the edge of the page. One can be undone until its time is over; then its action is done.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { Icon } from "./icon.tsx";
import { localNow } from "../clock.ts";

export interface Toast {
  readonly tone: "good" | "bad" | "info";
  readonly text: string;
  readonly command?: string;
  /** Shows Undo. The action runs when the time is over, or the page is left. */
  readonly held?: { readonly label: string; readonly run: () => void; readonly undo: () => void };
}

interface Shown extends Toast {
  readonly id: number;
  readonly until: number;
}

const HELD_MS = 5000;
const SHOWN_MS = 6000;

const toasts = signal<readonly Shown[]>([]);
const timers = new Map<number, ReturnType<typeof setTimeout>>();
let count = 0;

export function toast(one: Toast): void {
  count += 1;
  const id = count;
  const time = one.held === undefined ? (one.tone === "bad" ? SHOWN_MS * 2 : SHOWN_MS) : HELD_MS;
  // Of messages without an action only the newest stays.
  const others = toasts.peek().filter(({ held }) => held !== undefined || one.held !== undefined);
  toasts.value = [...others, { ...one, id, until: Date.now() + time }];
  timers.set(
    id,
    setTimeout(() => finish(id), time),
  );
}

/** Does now what is still held. */
export function releaseHeld(): void {
  for (const { id, held } of toasts.peek()) if (held !== undefined) finish(id);
}

/** Undoes the newest action that is still held. */
export function undoHeld(): void {
  const one = toasts.peek().findLast(({ held }) => held !== undefined);
  if (one === undefined) return;
  drop(one.id);
  one.held?.undo();
}

function finish(id: number): void {
  const one = drop(id);
  one?.held?.run();
}

function drop(id: number): Shown | undefined {
  clearTimeout(timers.get(id));
  timers.delete(id);
  const one = toasts.peek().find((other) => other.id === id);
  toasts.value = toasts.peek().filter((other) => other.id !== id);
  return one;
}

addEventListener("pagehide", releaseHeld);

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((one) => (
        <div key={one.id} class={`toast ${one.tone}`}>
          <span class="grow">
            {one.text}
            {one.command !== undefined && <code>{one.command}</code>}
          </span>
          {one.held !== undefined && (
            <button
              type="button"
              class="btn sm"
              onClick={() => {
                drop(one.id);
                one.held?.undo();
              }}
            >
              Undo <span class="muted">{Math.max(1, Math.ceil((one.until - localNow()) / 1000))} s</span>
            </button>
          )}
          <button
            type="button"
            class="btn ghost sq sm"
            aria-label={one.held === undefined ? "Close the message" : one.held.label}
            onClick={() => finish(one.id)}
          >
            <Icon name={one.held === undefined ? "x" : "check"} />
          </button>
        </div>
      ))}
    </div>
  );
}
