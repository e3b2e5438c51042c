// Charts: sparklines and meters as SVG with attributes; the Content-Security-Policy allows no style in markup.

import type { JSX } from "preact";

const WIDTH = 120;
const HEIGHT = 24;
const TOP = 3;

function points(values: readonly (number | null)[], highest: number): string {
  const step = WIDTH / Math.max(1, values.length - 1);
  let path = "";
  let last: number | undefined;
  values.forEach((value, index) => {
    const known = value ?? last;
    if (known === undefined) return;
    last = known;
    const y = HEIGHT - 1 - (highest === 0 ? 0 : (known / highest) * (HEIGHT - 1 - TOP));
    path += `${path === "" ? "M" : "L"}${(index * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  return path;
}

const lastOf = (values: readonly (number | null)[]): number => values.findLast((value) => value !== null) ?? 0;

/** One line with its area; with `second`, two lines on one scale and no area. */
export function Sparkline(props: {
  readonly values: readonly (number | null)[];
  readonly second?: readonly (number | null)[];
  readonly label: string;
}): JSX.Element {
  const { values, second } = props;
  const highest = Math.max(0, ...[...values, ...(second ?? [])].map((value) => value ?? 0));
  const first = values.findIndex((value) => value !== null);
  const path = points(values, highest);
  const endY = HEIGHT - 1 - (highest === 0 ? 0 : (lastOf(values) / highest) * (HEIGHT - 1 - TOP));
  const startX = (first * WIDTH) / Math.max(1, values.length - 1);
  return (
    <svg
      class="spark"
      width={WIDTH}
      height={HEIGHT}
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      role="img"
      aria-label={props.label}
    >
      {second === undefined && path !== "" && <path class="a" d={`${path}L${WIDTH} ${HEIGHT}L${startX} ${HEIGHT}Z`} />}
      {path !== "" && <path class="l" d={path} />}
      {second !== undefined && <path class="l2" d={points(second, highest)} />}
      {path !== "" && <circle class="e" cx={WIDTH} cy={endY} r="1.8" />}
    </svg>
  );
}

/** A bar per value; none is a dot on the ground. */
export function Bars({ values, label }: { readonly values: readonly number[]; readonly label: string }): JSX.Element {
  const bars = 40;
  const per = Math.max(1, Math.ceil(values.length / bars));
  const summed: number[] = [];
  for (let index = 0; index < values.length; index += per) {
    summed.push(values.slice(index, index + per).reduce((sum, value) => sum + value, 0));
  }
  const highest = Math.max(1, ...summed);
  const step = WIDTH / Math.max(1, summed.length);
  return (
    <svg class="spark" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {summed.map((value, index) => {
        const height = value === 0 ? 1 : 5 + (value / highest) * (HEIGHT - 7);
        return (
          <rect
            key={index}
            class={value === 0 ? "z" : "b"}
            x={index * step}
            y={HEIGHT - height}
            width={step * 0.6}
            height={height}
          />
        );
      })}
    </svg>
  );
}

/** A part of a whole. `failed` is a part of its own behind it. */
export function Meter(props: {
  readonly value: number;
  readonly max: number;
  readonly failed?: number;
  readonly label: string;
  readonly tone?: string;
  readonly width?: number;
}): JSX.Element {
  const { value, max, failed = 0, width = 88 } = props;
  const share = (part: number): number => (max <= 0 ? 0 : Math.min(1, part / max) * width);
  return (
    <svg
      class={`meter ${props.tone ?? ""}`}
      width={width}
      height="6"
      viewBox={`0 0 ${width} 6`}
      role="img"
      aria-label={props.label}
    >
      <rect class="whole" width={width} height="6" rx="3" />
      <rect class="part" width={share(value)} height="6" rx="3" />
      {failed > 0 && <rect class="bad" x={share(value)} width={Math.max(2, share(failed))} height="6" />}
    </svg>
  );
}
