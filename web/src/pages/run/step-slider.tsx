// Step slider: which committed step of a graph the page looks at. Moving it never changes the run.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { CheckpointBody } from "../../../../src/contract/history.ts";
import { duration } from "../../format.ts";

interface SliderProps {
  readonly checkpoints: readonly CheckpointBody[];
  /** undefined: now. */
  readonly step: number | undefined;
  readonly isLive: boolean;
  /** The names of the nodes that run now. */
  readonly running: readonly string[];
  readonly onStep: (step: number | undefined) => void;
}

const SHOWN = 9;

/** `search_kb ×2`, `a, b`. */
export function namesOf({ nodes, step }: CheckpointBody): string {
  if (nodes.length === 0) return step === 0 ? "input" : "fork";
  const counts = Map.groupBy(nodes, ({ name }) => name);
  const names = [...counts].map(([name, { length }]) => (length > 1 ? `${name} ×${length}` : name));
  return names.length > 2 ? `${names.slice(0, 2).join(", ")} +${names.length - 2}` : names.join(", ");
}

export function tookOfStep({ nodes }: CheckpointBody): number | undefined {
  const times = nodes.map(({ tookMs }) => tookMs).filter((ms) => ms !== undefined);
  return times.length === 0 ? undefined : Math.max(...times);
}

export function StepSlider({ checkpoints, step, isLive, running, onStep }: SliderProps): JSX.Element {
  const last = checkpoints.at(-1)?.step ?? 0;
  const first = checkpoints[0]?.step ?? 0;
  const at = step ?? last;
  const index = Math.max(
    0,
    checkpoints.findIndex((one) => one.step === at),
  );
  const from = Math.max(0, Math.min(index - Math.floor(SHOWN / 2), checkpoints.length - SHOWN));
  const shown = checkpoints.slice(from, from + SHOWN);
  const showsLive = isLive && from + SHOWN >= checkpoints.length;
  const cells = shown.length + (showsLive ? 1 : 0);
  const current = checkpoints[index];
  const text =
    step === undefined
      ? isLive
        ? `live, after step ${last}`
        : `step ${last}, the last one`
      : `step ${at}, ${current === undefined ? "" : namesOf(current)}`;
  const move = (by: number): void => {
    if (step === undefined) {
      if (by < 0) onStep(isLive ? last : Math.max(first, last - 1));
      return;
    }
    const next = checkpoints[index + by];
    if (next !== undefined) onStep(next.step);
    else if (by > 0) onStep(undefined);
  };
  const filled = step === undefined ? cells - 1 : shown.findIndex((one) => one.step === at);
  const half = 50 / cells;
  const box = useRef<HTMLDivElement>(null);
  // On a narrow screen the track scrolls; the current step stays in sight without moving the page.
  useEffect(() => {
    const own = box.current;
    const tick = own?.querySelector<HTMLElement>(".tick.cur");
    if (own && tick) own.scrollLeft = tick.offsetLeft + tick.offsetWidth / 2 - own.clientWidth / 2;
  }, [at, step, checkpoints.length]);
  return (
    <div
      class="sl"
      ref={box}
      tabIndex={0}
      role="slider"
      aria-label="Step"
      aria-valuemin={first}
      aria-valuemax={last}
      aria-valuenow={at}
      aria-valuetext={text}
      onKeyDown={(event) => {
        const moves: Record<string, () => void> = {
          ArrowLeft: () => move(-1),
          ArrowDown: () => move(-1),
          ArrowRight: () => move(1),
          ArrowUp: () => move(1),
          Home: () => onStep(first),
          End: () => onStep(undefined),
        };
        const run = moves[event.key];
        if (run === undefined) return;
        event.preventDefault();
        run();
      }}
    >
      {/* Set through the object model of styles, which the policy allows; a style attribute it would refuse. */}
      <div class="trk" style={{ gridTemplateColumns: `repeat(${cells}, 1fr)` }}>
        <span class="rail" style={{ left: `${half}%`, right: `${half}%` }} />
        <span class="fill" style={{ left: `${half}%`, width: `${Math.max(0, filled) * half * 2}%` }} />
        {shown.map((one) => (
          <span
            key={one.step}
            class={`tick ${step !== undefined && one.step === at ? "cur" : ""} ${one.step > at ? "aft" : ""} ${
              step === undefined && !isLive && one.step === last ? "cur" : ""
            }`}
            data-step={one.step}
            onClick={() => onStep(one.step)}
          >
            <i />
            <span class="cut-2">
              {one.step} {one.label === undefined ? namesOf(one) : one.label}
            </span>
            <span class="m">{tookOfStep(one) === undefined ? "\u00a0" : duration(tookOfStep(one)!)}</span>
          </span>
        ))}
        {showsLive && (
          <span
            class={`tick lv ${step === undefined ? "cur" : "aft"}`}
            data-step="live"
            onClick={() => onStep(undefined)}
          >
            <i />
            <span class="cut-2">
              {last + 1} {running.join(", ")}
            </span>
            <span class="m">live</span>
          </span>
        )}
      </div>
    </div>
  );
}
