// Status: a shape, a word and a color for every status. The shape alone tells them apart.

import type { JSX } from "preact";

export type Tone =
  | "running"
  | "completed"
  | "waiting"
  | "failed"
  | "stopped"
  | "queued"
  | "paused"
  | "cancelled"
  | "lost";

const TONES: Readonly<Record<string, Tone>> = {
  queued: "queued",
  expected: "queued",
  running: "running",
  waiting: "waiting",
  open: "waiting",
  paused: "paused",
  blocked: "stopped",
  determinism_violation: "stopped",
  stopped: "stopped",
  completed: "completed",
  continued: "completed",
  failed: "failed",
  timed_out: "failed",
  cancelled: "cancelled",
  skipped: "cancelled",
  lost: "lost",
  returned: "queued",
};

const WORDS: Readonly<Record<string, string>> = {
  blocked: "Stopped",
  determinism_violation: "Stopped",
  expected: "Expected",
  timed_out: "Timed out",
};

/** The tone of a status of a run, a step or an attempt. */
export function toneOf(status: string): Tone {
  return TONES[status] ?? "queued";
}

export function statusWord(status: string): string {
  return WORDS[status] ?? status[0]!.toUpperCase() + status.slice(1);
}

/** The class that sets the colors of a tone. */
export function toneClass(status: string): string {
  const tone = toneOf(status);
  return `s-${tone === "lost" ? "failed" : tone}`;
}

const line = {
  fill: "none",
  stroke: "currentColor",
  "stroke-width": 1.5,
  "stroke-linecap": "round",
  "stroke-linejoin": "round",
} as const;
const cut = { ...line, stroke: "var(--surface)" } as const;

function shape(tone: Tone): JSX.Element {
  switch (tone) {
    case "running":
      return (
        <>
          <circle cx="7" cy="7" r="5.2" {...line} stroke-opacity=".25" stroke-width="2" />
          <path class="spin" d="M7 1.8A5.2 5.2 0 0 1 12.2 7" {...line} stroke-width="2" />
        </>
      );
    case "waiting":
      return (
        <>
          <circle cx="7" cy="7" r="5.5" {...line} />
          <path d="M7 4v3.2l2 1.2" {...line} />
        </>
      );
    case "failed":
      return (
        <>
          <circle cx="7" cy="7" r="6.2" fill="currentColor" />
          <path d="m4.9 4.9 4.2 4.2m0-4.2L4.9 9.1" {...cut} />
        </>
      );
    case "lost":
      return (
        <>
          <circle cx="7" cy="7" r="5.5" {...line} stroke-dasharray="2.2 2.12" />
          <path d="m5 5 4 4m0-4L5 9" {...line} />
        </>
      );
    case "stopped":
      return (
        <>
          <path d="M4.4.9h5.2l3.5 3.5v5.2l-3.5 3.5H4.4L.9 9.6V4.4z" fill="currentColor" />
          <path d="M7 3.9v3.6M7 9.9v.01" {...cut} stroke-width="1.6" />
        </>
      );
    case "completed":
      return (
        <>
          <circle cx="7" cy="7" r="6.2" fill="currentColor" />
          <path d="m4.3 7.2 1.9 1.9 3.6-4" {...cut} />
        </>
      );
    case "cancelled":
      return (
        <>
          <circle cx="7" cy="7" r="5.5" {...line} />
          <path d="m3.4 10.6 7.2-7.2" {...line} />
        </>
      );
    case "paused":
      return (
        <>
          <circle cx="7" cy="7" r="5.5" {...line} />
          <path d="M5.6 5v4M8.4 5v4" {...line} />
        </>
      );
    case "queued":
      return <circle cx="7" cy="7" r="5.5" {...line} stroke-dasharray="2.2 2.12" />;
  }
}

/** The shape as a part of another drawing, 14 × 14. */
export function statusShape(status: string): JSX.Element {
  return shape(toneOf(status));
}

/** The shape alone; `label` for readers that do not see it. */
export function StatusGlyph({ status, label }: { readonly status: string; readonly label?: string }): JSX.Element {
  return (
    <span class={`st ${toneClass(status)}`}>
      <svg viewBox="0 0 14 14" aria-hidden="true">
        {shape(toneOf(status))}
      </svg>
      {label !== undefined && <span class="vh">{label}</span>}
    </span>
  );
}

/** Shape and word. */
export function Status({
  status,
  word,
  pending,
}: {
  readonly status: string;
  readonly word?: string;
  readonly pending?: boolean;
}): JSX.Element {
  return (
    <span class={`st ${toneClass(status)} ${pending === true ? "pending" : ""}`}>
      <svg viewBox="0 0 14 14" aria-hidden="true">
        {shape(toneOf(status))}
      </svg>
      {word ?? statusWord(status)}
    </span>
  );
}

export function Badge({
  status,
  word,
  pending,
}: {
  readonly status: string;
  readonly word?: string;
  readonly pending?: boolean;
}): JSX.Element {
  return (
    <span class={`badge ${toneClass(status)} ${pending === true ? "pending" : ""}`}>
      <svg viewBox="0 0 14 14" aria-hidden="true">
        {shape(toneOf(status))}
      </svg>
      {word ?? statusWord(status)}
    </span>
  );
}

const ATTEMPTS: Readonly<Record<string, { readonly class: string; readonly word: string }>> = {
  failed: { class: "f", word: "failed" },
  lost: { class: "l", word: "lost" },
  returned: { class: "l", word: "returned" },
  running: { class: "r", word: "running" },
  completed: { class: "o", word: "done" },
};

/** Square: failed. Disk: done. Ring: running. Hollow: lost. */
export function AttemptStrip({ attempts }: { readonly attempts: readonly string[] }): JSX.Element {
  if (attempts.length === 0) return <span class="muted">—</span>;
  return (
    <span class="att" role="img" aria-label={attempts.map((one) => ATTEMPTS[one]?.word ?? one).join(", ")}>
      {attempts.map((one, index) => (
        <i key={index} class={ATTEMPTS[one]?.class ?? ""} />
      ))}
    </span>
  );
}
