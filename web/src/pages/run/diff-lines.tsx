// Diff lines: removed, added and unchanged values, with a sign besides the color.

import type { JSX } from "preact";
import { plural } from "../../format.ts";
import type { DiffLine } from "../../graph/state-diff.ts";

interface DiffLinesProps {
  readonly label: string;
  readonly lines: readonly DiffLine[];
  readonly leftOut: number;
  readonly empty: string;
}

const SIGNS = { add: "+", del: "−", same: " " } as const;

export function DiffLines({ label, lines, leftOut, empty }: DiffLinesProps): JSX.Element {
  return (
    <div class="diff" tabIndex={0} role="region" aria-label={label}>
      {lines.length === 0 && <p class="muted pad">{empty}</p>}
      {lines.map((line, index) => (
        <div key={index} class={line.kind}>
          <span class="ch any">{line.name}</span>
          <span>{SIGNS[line.kind]}</span>
          <span class="any">{line.text}</span>
        </div>
      ))}
      {leftOut > 0 && <p class="muted pad">{plural(leftOut, "further line")} left out</p>}
    </div>
  );
}
