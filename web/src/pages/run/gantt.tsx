// Gantt: the bars of a row. Queue wait is an outline, work is solid, lost work is hatched, the future is dashed.

import type { ComponentChildren, JSX } from "preact";
import type { TimelineRow, TimelineSpan } from "../../../../src/contract/timeline.ts";
import { duration, exactDuration } from "../../format.ts";
import type { TimeScale } from "./time-scale.ts";
import { endOf, lengthOf, startOf } from "./step-row.ts";

const percentOf = (share: number): string => `${(share * 100).toFixed(3)}%`;

/** Where something lies. Set through the CSSOM: the Content-Security-Policy refuses style attributes. */
function between(from: number, to: number): { readonly left: string; readonly width: string } {
  return { left: percentOf(from), width: percentOf(Math.max(0, to - from)) };
}

const CLASSES: Readonly<Record<TimelineSpan["kind"], string>> = {
  queue: "wait",
  work: "s-completed",
  failed: "s-failed",
  lost: "lost hatch",
  returned: "returned",
  backoff: "back",
  open: "s-waiting pend",
  running: "s-running live",
};

export function Bar({ span, scale }: { readonly span: TimelineSpan; readonly scale: TimeScale }): JSX.Element {
  const from = scale.place(Date.parse(span.from));
  const to = scale.place(span.to === undefined ? scale.end : Date.parse(span.to));
  const until = span.to === undefined && span.until !== undefined ? Date.parse(span.until) : undefined;
  return (
    <>
      <i class={`b ${CLASSES[span.kind]}`} style={between(from, to)} title={titleOf(span, scale.end)} />
      {until !== undefined && until > scale.end && span.kind !== "backoff" && (
        <i class="b fut" style={between(to, scale.place(until))} />
      )}
    </>
  );
}

const WORDS: Readonly<Record<TimelineSpan["kind"], string>> = {
  queue: "waited for a worker",
  work: "ran",
  failed: "failed after",
  lost: "lost after",
  returned: "given back after",
  backoff: "waited for the next attempt",
  open: "open for",
  running: "running for",
};

function titleOf(span: TimelineSpan, now: number): string {
  return [`${WORDS[span.kind]} ${exactDuration(lengthOf(span, now))}`, span.worker && `on ${span.worker}`]
    .filter(Boolean)
    .join(" ");
}

/** Text beside a bar: right of it, or left of it where there is no room. */
export function BarText(props: {
  readonly from: number;
  readonly to: number;
  readonly bad?: boolean;
  readonly children: ComponentChildren;
  /** About how long the text is. */
  readonly letters?: number;
}): JSX.Element {
  // A chart is about 600 px wide, a letter 6.
  const isLeft = props.to + ((props.letters ?? 12) * 6) / 600 > 1 && props.from > 1 - props.to;
  const style = isLeft ? { right: percentOf(1 - props.from) } : { left: percentOf(props.to) };
  return (
    <span class={`t ${isLeft ? "r" : ""} ${props.bad === true ? "f" : ""}`} style={style}>
      {props.children}
    </span>
  );
}

/** All bars of a step, and how long it took. */
export function RowBars({
  row,
  scale,
  children,
}: {
  readonly row: TimelineRow;
  readonly scale: TimeScale;
  readonly children?: ComponentChildren;
}): JSX.Element {
  const start = startOf(row);
  if (start === undefined) return <>{children}</>;
  const end = endOf(row);
  const last = row.spans.at(-1)!;
  const until = last.to === undefined && last.until !== undefined ? Date.parse(last.until) : undefined;
  const from = scale.place(start);
  const to = scale.place(end ?? (until !== undefined && until > scale.end ? until : scale.end));
  const left = until === undefined ? undefined : until - scale.end;
  const text =
    end !== undefined
      ? exactDuration(end - start)
      : last.kind === "backoff" && left !== undefined
        ? `retries in ${coarse(left)}`
        : left !== undefined && row.kind === "sleep"
          ? `in ${coarse(left)}`
          : undefined;
  return (
    <>
      {row.spans.map((span, index) => (
        <Bar key={index} span={span} scale={scale} />
      ))}
      {text !== undefined && children === undefined && (
        <BarText from={from} to={to} letters={text.length + 1}>
          <span>{text}</span>
        </BarText>
      )}
      {children}
    </>
  );
}

/** Without seconds from a minute on: it is read, not measured. */
function coarse(ms: number): string {
  const value = Math.max(0, ms);
  return duration(value < 60_000 ? value : Math.round(value / 60_000) * 60_000);
}

export { between, percentOf };
