// Icons: drawn by hand on a 14 px grid, as paths in the page, so that no file is loaded for them.

import type { JSX } from "preact";

const SHAPES = {
  search: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4ZM9.2 9.2l3.3 3.3",
  copy: "M6 4.5h5a1.5 1.5 0 0 1 1.5 1.5v5a1.5 1.5 0 0 1-1.5 1.5H6A1.5 1.5 0 0 1 4.5 11V6A1.5 1.5 0 0 1 6 4.5ZM9.5 2.5a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1",
  x: "m3.5 3.5 7 7m0-7-7 7",
  plus: "M7 2.5v9M2.5 7h9",
  chev: "m4 5.5 3 3 3-3",
  right: "m5.5 4 3 3-3 3",
  left: "m8.5 4-3 3 3 3",
  up: "M7 11.5v-9m-3.5 3.5L7 2.5 10.5 6",
  person: "M7 2a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5ZM2.2 12.5c.5-2.6 2.4-4 4.8-4s4.3 1.4 4.8 4",
  fork: "M3.5 1.4a1.6 1.6 0 1 0 0 3.2 1.6 1.6 0 0 0 0-3.2ZM10.5 1.4a1.6 1.6 0 1 0 0 3.2 1.6 1.6 0 0 0 0-3.2ZM3.5 9.6a1.6 1.6 0 1 0 0 3.2 1.6 1.6 0 0 0 0-3.2ZM3.5 4.6v5M10.5 4.6c0 3-4 2.6-6.6 4",
  play: "M4 2.5v9l7-4.5z",
  pause: "M4.5 3v8M9.5 3v8",
  stop: "M4 3h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1Z",
  retry: "M11.5 7a4.5 4.5 0 1 1-1.5-3.3M11.5 1.8v2.7H8.8",
  clock: "M7 1.8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 7 1.8ZM7 4v3l2 1.4",
  warn: "M7 1.8 13 12H1zM7 5.5v3M7 10.3v.01",
  list: "M5 3.5h7M5 7h7M5 10.5h7M2 3.5h.01M2 7h.01M2 10.5h.01",
  check: "m2.5 7.5 3 3 6-7",
  layers: "M7 1.8 12.5 4.8 7 7.8 1.5 4.8zM1.5 7.5 7 10.5l5.5-3",
  shield: "M7 1.5 12 3.3v3.5c0 3-2.2 4.9-5 5.9-2.8-1-5-2.9-5-5.9V3.3zM4.8 7l1.6 1.6 2.9-3.2",
  more: "M3 7h.01M7 7h.01M11 7h.01",
  workflow: "M2 3h6M2 7h10M2 11h4",
  graph:
    "M3 5.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4ZM11 1.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4ZM11 9.3a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4ZM4.6 6.2l4.8-2.4M4.6 7.8l4.8 2.4",
  flow: "M2 7h3M5 7l4-4h3M5 7h7M5 7l4 4h3",
  term: "m2.5 4 3 3-3 3M7.5 10.5h4",
  coin: "M7 1.8a5.2 5.2 0 1 0 0 10.4A5.2 5.2 0 0 0 7 1.8ZM8.8 5.2C8.5 4.6 7.9 4.3 7 4.3c-1.1 0-1.9.5-1.9 1.3 0 1.9 3.9.8 3.9 2.8 0 .8-.8 1.3-2 1.3-.9 0-1.6-.3-2-1M7 3.4v7.2",
  edit: "M9.5 2.5 11.5 4.5 5 11l-2.8.8L3 9z",
  down: "M7 2.5v7m-3-3 3 3 3-3M2.5 12h9",
  link: "M6 8a2.3 2.3 0 0 0 3.3 0l2-2A2.3 2.3 0 0 0 8 2.7l-.7.7M8 6a2.3 2.3 0 0 0-3.3 0l-2 2A2.3 2.3 0 0 0 6 11.3l.7-.7",
  peers:
    "M3.5 2.2a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4ZM10.5 8.4a1.7 1.7 0 1 0 0 3.4 1.7 1.7 0 0 0 0-3.4ZM5.2 3.9h3.3a2 2 0 0 1 2 2v2.5M8.8 10.1H5.5a2 2 0 0 1-2-2V5.6",
  eye: "M1.2 7S3.2 3 7 3s5.8 4 5.8 4-2 4-5.8 4-5.8-4-5.8-4ZM7 5.4a1.6 1.6 0 1 0 0 3.2 1.6 1.6 0 0 0 0-3.2Z",
} as const;

export type IconName = keyof typeof SHAPES;

export function Icon({ name, class: extra = "" }: { readonly name: IconName; readonly class?: string }): JSX.Element {
  return (
    <svg class={`i ${extra}`} viewBox="0 0 14 14" aria-hidden="true">
      <path d={SHAPES[name]} {...(name === "more" && { "stroke-width": 2.2 })} />
    </svg>
  );
}

/** The shape of a definition's kind. */
export function KindIcon({ kind }: { readonly kind: string }): JSX.Element {
  const name = kind === "graph" ? "graph" : kind === "flow" ? "flow" : "workflow";
  return <Icon name={name} class="kind" />;
}

export function Brand({ size = 18 }: { readonly size?: number }): JSX.Element {
  return (
    <svg width={size} height={size} viewBox="0 0 18 18" aria-hidden="true">
      <circle cx="4" cy="6.3" r="1.6" fill="currentColor" />
      <circle cx="4" cy="11.7" r="1.6" fill="currentColor" />
      <path d="M9 2v14" stroke="currentColor" stroke-width="1.4" />
      <path d="M13.7 2v14" stroke="currentColor" stroke-width="3.4" />
    </svg>
  );
}
