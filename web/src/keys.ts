// Keys: single keys and sequences, active while the component that binds them is shown. Keys typed into fields are never taken.
//
// keys.K1. Single keys can be switched off (WCAG 2.1.4); the choice stays in this browser. Escape, Enter and arrows always work.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Key {
  /** `j`, `Shift+X`, `Enter`, `g r`, `Mod+k`. */
  readonly keys: string;
  readonly label: string;
  readonly run: () => void;
  /** Absent: always. */
  readonly when?: () => boolean;
  /** Not shown among the keys. */
  readonly hidden?: true;
}

interface Group {
  readonly title: string;
  current: readonly Key[];
}

const groups: Group[] = [];
export const keyHelpOpen = signal(false);
export const singleKeys = signal(readChoice());

function readChoice(): boolean {
  try {
    return localStorage.getItem("reprise.keys") !== "off";
  } catch {
    return true;
  }
}

export function setSingleKeys(on: boolean): void {
  singleKeys.value = on;
  try {
    localStorage.setItem("reprise.keys", on ? "on" : "off");
  } catch {
    // Without storage the choice lasts as long as the page.
  }
}

export function boundKeys(): readonly { readonly title: string; readonly keys: readonly Key[] }[] {
  return groups.map(({ title, current }) => ({ title, keys: current.filter(({ hidden }) => hidden !== true) }));
}

/** Binds keys while the component is shown. Later groups go first: a dialog's keys hide those of its page. */
export function useKeys(title: string, keys: readonly Key[]): void {
  const group = useRef<Group>({ title, current: keys });
  group.current.current = keys;
  useEffect(() => {
    const own = group.current;
    groups.push(own);
    return () => {
      groups.splice(groups.indexOf(own), 1);
    };
  }, []);
}

const SEQUENCE_MS = 1200;
let prefix = "";
let prefixTimer: ReturnType<typeof setTimeout> | undefined;

function nameOf(event: KeyboardEvent): string {
  const { key } = event;
  if (event.metaKey || event.ctrlKey) return `Mod+${key.toLowerCase()}`;
  if (/^[a-z]$/i.test(key)) return event.shiftKey ? `Shift+${key.toUpperCase()}` : key.toLowerCase();
  return key;
}

const ALWAYS = /^(?:Escape|Enter|Arrow|Mod\+|Home|End)/;

function isField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return target.type !== "checkbox" && target.type !== "radio";
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || target.isContentEditable;
}

function onKeyDown(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  const name = nameOf(event);
  if (isField(event.target) && !name.startsWith("Mod+")) return;
  if (!singleKeys.peek() && !ALWAYS.test(name)) return;
  // Enter on a button or link presses it; arrows on a slider or in a table that scrolls belong to it.
  const { target } = event;
  if (name === "Enter" && target instanceof HTMLElement && target.closest("a, button, summary, [role=button]") !== null)
    return;
  if (
    name.startsWith("Arrow") &&
    target instanceof HTMLElement &&
    target.closest("[role=slider], [role=menu]") !== null
  )
    return;
  // An open dialog keeps its keys: Escape closes it, and nothing reaches the page behind.
  if (document.querySelector("dialog[open]") !== null && !name.startsWith("Mod+")) return;
  const sequence = prefix === "" ? name : `${prefix} ${name}`;
  clearTimeout(prefixTimer);
  prefix = "";
  for (let index = groups.length - 1; index >= 0; index -= 1) {
    for (const key of groups[index]!.current) {
      if (key.keys === sequence && key.when?.() !== false) {
        event.preventDefault();
        key.run();
        return;
      }
    }
  }
  const starts = groups.some(({ current }) => current.some(({ keys }) => keys.startsWith(`${sequence} `)));
  if (starts) {
    prefix = sequence;
    prefixTimer = setTimeout(() => (prefix = ""), SEQUENCE_MS);
  }
}

export function startKeys(): void {
  document.addEventListener("keydown", onKeyDown);
}

/** How a key is written: `⇧X`, `⌘K`. */
export function keyCaps(keys: string): readonly string[] {
  const isMac = /Mac|iPhone|iPad/.test(navigator.userAgent);
  return keys
    .split(" ")
    .map((key) =>
      key
        .replace("Shift+", "⇧")
        .replace("Mod+", isMac ? "⌘" : "Ctrl ")
        .replace("Escape", "Esc")
        .replace("ArrowUp", "↑")
        .replace("ArrowDown", "↓")
        .replace("ArrowLeft", "←")
        .replace("ArrowRight", "→"),
    )
    .map((cap) =>
      cap.length <= 7 && !/^(?:Enter|Esc|Home|End)$/.test(cap) ? cap.toUpperCase().replace("CTRL", "Ctrl") : cap,
    );
}
