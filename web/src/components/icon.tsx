// Icons: drawn by hand on a 14 px grid, as paths in the page, so that no file is loaded for them.

import type { JSX } from "preact";

const SHAPES = {
  search: "M6 1.8a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4ZM9.2 9.2l3.3 3.3",
  copy: "M6 4.5h5a1.500 1.500 0 0 1 1.500 1.500v5a1.500 1.500 0 0 1-1.500 1.500H6A1.500 1.500 0 0 1 4.500 11V6A1.500 1.500 0 0 1 6 4.500ZM9.500 2.500a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1",
  x: "m3.500 3.500 7 7m0-7-7 7",
  plus: "M7 2.500v9M2.500 7h9",
  chev: "m4 5.500 3 3 3-3",
  right: "m5.500 4 3 3-3 3",
  left: "m8.500 4-3 3 3 3",
  up: "M7 11.500v-9m-3.500 3.500L7 2.500 10.500 6",
  person: "M7 2a2.500 2.500 0 1 0 0 5 2.500 2.500 0 0 0 0-5ZM2.200 12.500c.5-2.600 2.400-4 4.800-4s4.300 1.400 4.800 4",
  fork: "M3.500 1.400a1.600 1.600 0 1 0 0 3.200 1.600 1.600 0 0 0 0-3.200ZM10.500 1.400a1.600 1.600 0 1 0 0 3.200 1.600 1.600 0 0 0 0-3.200ZM3.500 9.600a1.600 1.600 0 1 0 0 3.200 1.600 1.600 0 0 0 0-3.200ZM3.500 4.600v5M10.500 4.600c0 3-4 2.600-6.600 4",
  play: "M4 2.500v9l7-4.500z",
  pause: "M4.500 3v8M9.500 3v8",
  stop: "M4 3h6a1 1 0 0 1 1 1v6a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V4a1 1 0 0 1 1-1Z",
  retry: "M11.500 7a4.500 4.500 0 1 1-1.500-3.300M11.500 1.800v2.700H8.800",
  clock: "M7 1.800a5.200 5.200 0 1 0 0 10.400A5.200 5.200 0 0 0 7 1.800ZM7 4v3l2 1.400",
  warn: "M7 1.800 13 12H1zM7 5.500v3M7 10.300v.01",
  list: "M5 3.500h7M5 7h7M5 10.500h7M2 3.500h.01M2 7h.01M2 10.500h.01",
  check: "m2.500 7.500 3 3 6-7",
  layers: "M7 1.800 12.500 4.800 7 7.800 1.500 4.800zM1.500 7.500 7 10.500l5.500-3",
  shield:
    "M7 1.500 12 3.300v3.500c0 3-2.200 4.900-5 5.900-2.800-1-5-2.900-5-5.900V3.300zM4.800 7l1.600 1.600 2.900-3.200",
  more: "M3 7h.01M7 7h.01M11 7h.01",
  workflow: "M2 3h6M2 7h10M2 11h4",
  graph:
    "M3 5.300a1.700 1.700 0 1 0 0 3.400 1.700 1.700 0 0 0 0-3.400ZM11 1.300a1.700 1.700 0 1 0 0 3.400 1.700 1.700 0 0 0 0-3.400ZM11 9.300a1.700 1.700 0 1 0 0 3.400 1.700 1.700 0 0 0 0-3.400ZM4.600 6.200l4.800-2.400M4.600 7.800l4.800 2.400",
  flow: "M2 7h3M5 7l4-4h3M5 7h7M5 7l4 4h3",
  term: "m2.500 4 3 3-3 3M7.500 10.500h4",
  coin: "M7 1.800a5.200 5.200 0 1 0 0 10.400A5.200 5.200 0 0 0 7 1.800ZM8.800 5.200C8.500 4.600 7.900 4.300 7 4.300c-1.100 0-1.900.5-1.900 1.300 0 1.900 3.900.8 3.900 2.800 0 .8-.8 1.300-2 1.300-.9 0-1.600-.3-2-1M7 3.400v7.200",
  edit: "M9.500 2.500 11.500 4.500 5 11l-2.800.8L3 9z",
  down: "M7 2.500v7m-3-3 3 3 3-3M2.500 12h9",
  link: "M6 8a2.300 2.300 0 0 0 3.300 0l2-2A2.300 2.300 0 0 0 8 2.700l-.7.700M8 6a2.300 2.300 0 0 0-3.300 0l-2 2A2.300 2.300 0 0 0 6 11.300l.7-.7",
  peers:
    "M3.500 2.200a1.700 1.700 0 1 0 0 3.400 1.700 1.700 0 0 0 0-3.400ZM10.500 8.400a1.700 1.700 0 1 0 0 3.400 1.700 1.700 0 0 0 0-3.400ZM5.200 3.900h3.300a2 2 0 0 1 2 2v2.500M8.800 10.100H5.500a2 2 0 0 1-2-2V5.600",
  eye: "M1.200 7S3.200 3 7 3s5.800 4 5.800 4-2 4-5.800 4-5.800-4-5.800-4ZM7 5.400a1.600 1.600 0 1 0 0 3.200 1.600 1.600 0 0 0 0-3.200Z",
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
      <circle cx="4" cy="6.300" r="1.600" fill="currentColor" />
      <circle cx="4" cy="11.700" r="1.600" fill="currentColor" />
      <path d="M9 2v14" stroke="currentColor" stroke-width="1.400" />
      <path d="M13.700 2v14" stroke="currentColor" stroke-width="3.400" />
    </svg>
  );
}
