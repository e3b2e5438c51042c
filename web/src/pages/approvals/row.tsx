// A row of an open promise: what, since when, until when, and the two answers.

import type { JSX } from "preact";
import type { OpenPromiseBody } from "../../../../src/contract/run.ts";
import { now } from "../../clock.ts";
import { Button } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { Meter } from "../../components/charts.tsx";
import { clockTime, percent, shortTime, tickingDuration } from "../../format.ts";
import { preview } from "../../graph/preview.ts";
import { href, runPath } from "../../router.ts";
import { canAnswer, progress, wordOf } from "./decide.ts";
import { textOfPromise } from "./promise-text.ts";
import type { OpenRow } from "./open-list.ts";

interface RowProps {
  readonly row: OpenRow;
  readonly isCurrent: boolean;
  readonly isSelected: boolean;
  /** One click is enough: the schema says what Approve sends. */
  readonly isSure: boolean;
  readonly onSelect: (range: boolean) => void;
  readonly onOpen: () => void;
  readonly onApprove: () => void;
  readonly onReject: () => void;
}

export function PromiseRow(props: RowProps): JSX.Element {
  const { promise, gone, id } = props.row;
  const { title, why, rest } = textOfPromise(promise);
  const answered = progress.value.get(id);
  const isBudget = promise.kind === "budget";
  return (
    <li
      class={`ap ${props.isCurrent ? "on" : ""} ${gone || answered !== undefined ? "gone" : ""}`}
      aria-current={props.isCurrent ? "true" : undefined}
      data-id={id}
    >
      {canAnswer(promise) ? (
        <label class="pick">
          <input
            type="checkbox"
            checked={props.isSelected}
            disabled={gone}
            aria-label={`Select ${title}`}
            onClick={(event) => props.onSelect(event.shiftKey)}
          />
        </label>
      ) : (
        <span />
      )}
      <span class={isBudget ? "ic coin" : "ic"}>
        <Icon name={isBudget ? "coin" : "person"} />
      </span>
      <div class="about">
        {isBudget ? (
          <span class="what any">{title}</span>
        ) : (
          <button type="button" class="what any" aria-expanded={props.isCurrent} onClick={props.onOpen}>
            {title}
          </button>
        )}
        {why !== "" && <div class="why any">{why}</div>}
        {promise.hidden?.includes("show") === true ? (
          <div class="pay">hidden: needs role reader</div>
        ) : (
          rest !== undefined && <div class="pay">{preview(rest, 240)}</div>
        )}
        <div class="src">
          <a class="mono any" href={href(runPath(promise.run))}>
            {promise.run}
          </a>
          <span>{promise.definition}</span>
          <span class="any">
            port{" "}
            <span class="mono">
              {promise.name}
              {promise.key !== undefined && ` · ${promise.key}`}
            </span>
          </span>
        </div>
      </div>
      <Times promise={promise} />
      <div class="acts">
        {answered !== undefined ? (
          <span class="st-word">
            {wordOf(answered.decision, promise.kind)}
            {answered.state === "held" ? ", not sent yet" : answered.state === "sending" ? ", sending" : ""}
          </span>
        ) : gone ? (
          <span class="st-word">No longer open</span>
        ) : (
          canAnswer(promise) && (
            <>
              <Button small acts {...(props.isCurrent && { kind: "primary" as const })} onClick={props.onApprove}>
                {isBudget ? "Raise…" : props.isSure ? "Approve" : "Approve…"}
              </Button>
              <Button small acts onClick={props.onReject}>
                {isBudget ? "Decline…" : "Reject"}
              </Button>
            </>
          )
        )}
      </div>
    </li>
  );
}

function Times({ promise }: { readonly promise: OpenPromiseBody }): JSX.Element {
  const since = Date.parse(promise.createdAt);
  const age = now.value - since;
  if (promise.deadline === undefined)
    return (
      <div class="tm">
        <span>
          since <b class="strong">{tickingDuration(age)}</b>
        </span>
        <span>no time limit</span>
      </div>
    );
  const until = Date.parse(promise.deadline);
  const left = until - now.value;
  const share = age / Math.max(1, until - since);
  const isSoon = left < 15 * 60_000 || share > 0.9;
  const isToday = new Date(until).toDateString() === new Date(now.value).toDateString();
  const time = isToday ? clockTime(until).slice(0, 5) : shortTime(until, now.value);
  return (
    <div class="tm">
      <span>
        since <b class="strong">{tickingDuration(age)}</b>
      </span>
      <span class={isSoon ? "soon" : ""}>
        until {time}
        {left <= 0 ? " · overdue" : isToday || isSoon ? ` · ${tickingDuration(left)}${isSoon ? " left" : ""}` : ""}
      </span>
      <Meter
        value={Math.min(age, until - since)}
        max={until - since}
        width={140}
        tone={isSoon ? "s-failed" : "s-waiting"}
        label={`${percent(Math.min(1, share), 1)} of the time is used`}
      />
    </div>
  );
}
