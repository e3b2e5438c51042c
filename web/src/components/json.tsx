// JSON: payloads as a tree that folds. Payloads come from anywhere: they become text nodes only, never markup or addresses.
//
// json.J1. No part of a payload becomes HTML, an attribute that loads something, or a link.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { copyText } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { plural } from "../format.ts";

/** Values up to this length as text stand on one line. */
const ONE_LINE = 60;
const SHOWN_ITEMS = 100;
const SHOWN_TEXT = 2000;
const DEEPEST = 60;

interface JsonProps {
  readonly value: unknown;
  readonly label: string;
  /** Levels that are open at first. */
  readonly open?: number;
  /** No buttons around it. */
  readonly plain?: boolean;
}

/** A payload with a button that copies it. */
export function Json({ value, label, open = 2, plain = false }: JsonProps): JSX.Element {
  return (
    <div class="code json" tabIndex={0} role="region" aria-label={label}>
      {!plain && (
        <button
          type="button"
          class="json-copy"
          aria-label={`Copy ${label}`}
          onClick={() => void copyText(textOf(value), `Copied ${label}`)}
        >
          <Icon name="copy" />
        </button>
      )}
      <Value value={value} open={open} depth={0} />
    </div>
  );
}

/** In place of a payload that the caller may not read. */
export function Hidden(): JSX.Element {
  return <span class="muted">hidden: needs role reader</span>;
}

export function textOf(value: unknown): string {
  return value === undefined ? "undefined" : JSON.stringify(value, undefined, 2);
}

/** On one line, for sentences. */
export function InlineJson({ value, max = 160 }: { readonly value: unknown; readonly max?: number }): JSX.Element {
  const text = compact(value);
  return (
    <code title={text.length > max ? text.slice(0, SHOWN_TEXT) : undefined}>
      {text.length > max ? `${text.slice(0, max)}…` : text}
    </code>
  );
}

function compact(value: unknown): string {
  if (value === undefined) return "undefined";
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(compact).join(", ")}]`;
  const items = Object.entries(value).map(([key, one]) => `${JSON.stringify(key)}: ${compact(one)}`);
  return items.length === 0 ? "{}" : `{ ${items.join(", ")} }`;
}

function Value({
  value,
  open,
  depth,
}: {
  readonly value: unknown;
  readonly open: number;
  readonly depth: number;
}): JSX.Element {
  if (value === undefined) return <span class="c">undefined</span>;
  if (value === null) return <span class="n">null</span>;
  if (typeof value === "string") return <Text value={value} />;
  if (typeof value !== "object") return <span class="n">{JSON.stringify(value)}</span>;
  if (depth > DEEPEST) return <span class="c">… deeper than {DEEPEST} levels</span>;
  return <Branch value={value} open={open} depth={depth} />;
}

function Text({ value }: { readonly value: string }): JSX.Element {
  const [whole, setWhole] = useState(false);
  const isLong = value.length > SHOWN_TEXT;
  return (
    <>
      <span class="s">{JSON.stringify(isLong && !whole ? value.slice(0, SHOWN_TEXT) : value)}</span>
      {isLong && !whole && (
        <button type="button" class="fold-more" onClick={() => setWhole(true)}>
          {plural(value.length - SHOWN_TEXT, "more character")}
        </button>
      )}
    </>
  );
}

function Branch({
  value,
  open,
  depth,
}: {
  readonly value: object;
  readonly open: number;
  readonly depth: number;
}): JSX.Element {
  const isList = Array.isArray(value);
  const items = Object.entries(value);
  const [shown, setShown] = useState(SHOWN_ITEMS);
  const fitsLine = isShort(value);
  const [isOpen, setOpen] = useState(depth < open);
  const [left, right] = isList ? ["[", "]"] : ["{", "}"];
  if (items.length === 0) return <span>{left + right}</span>;
  if (fitsLine && depth > 0) {
    return (
      <span>
        {left}
        {!isList && " "}
        {items.map(([key, one], index) => (
          <span key={key}>
            {index > 0 && ", "}
            {!isList && <Name name={key} />}
            <Value value={one} open={open} depth={depth + 1} />
          </span>
        ))}
        {!isList && " "}
        {right}
      </span>
    );
  }
  if (!isOpen) {
    return (
      <Fold open={false} onClick={() => setOpen(true)}>
        {left}…{right} <span class="c">{plural(items.length, isList ? "item" : "key")}</span>
      </Fold>
    );
  }
  return (
    <span>
      <Fold open onClick={() => setOpen(false)}>
        {left}
      </Fold>
      <span class="json-items">
        {items.slice(0, shown).map(([key, one], index) => (
          <span class="json-item" key={key}>
            {!isList && <Name name={key} />}
            <Value value={one} open={open} depth={depth + 1} />
            {index < items.length - 1 && ","}
          </span>
        ))}
        {items.length > shown && (
          <button type="button" class="fold-more" onClick={() => setShown(shown * 4)}>
            {plural(items.length - shown, "more item")}
          </button>
        )}
      </span>
      {right}
    </span>
  );
}

function Name({ name }: { readonly name: string }): JSX.Element {
  return <span class="k">{/^[\w$-]{1,80}$/.test(name) ? name : JSON.stringify(name)}: </span>;
}

function Fold({
  open,
  onClick,
  children,
}: {
  readonly open: boolean;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
}): JSX.Element {
  return (
    <button type="button" class="fold-toggle" aria-expanded={open} onClick={onClick}>
      {children}
    </button>
  );
}

function isShort(value: object): boolean {
  let size = 0;
  const measure = (one: unknown): void => {
    if (size > ONE_LINE) return;
    if (one === null || typeof one !== "object") {
      size += typeof one === "string" ? one.length + 2 : 4;
      return;
    }
    for (const [key, part] of Object.entries(one)) {
      size += Array.isArray(one) ? 2 : key.length + 4;
      measure(part);
      if (size > ONE_LINE) return;
    }
  };
  measure(value);
  return size <= ONE_LINE;
}
