// Stream panel: what a run emits, live. A repeated execution discards the text of the one before and says so. The text is no live region:
// a screen reader reads new text when the person asks for it.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunDetail } from "../../../src/contract/run.ts";
import { command } from "../cli.ts";
import { localNow } from "../clock.ts";
import { announcement, Button, Command } from "../components/controls.tsx";
import { Icon } from "../components/icon.tsx";
import { amount, count, plural } from "../format.ts";
import { param, setQuery } from "../router.ts";
import { can } from "../site.ts";
import { followStream, type StreamState } from "./follow-stream.ts";
import {
  EMPTY_STREAM,
  passagesOf,
  rateOf,
  usageOf,
  withFrames,
  type ModelCall,
  type Passage,
  type StreamModel,
} from "./stream-model.ts";
import "./stream.css";

export function StreamPanel({ run }: { readonly run: RunDetail }): JSX.Element | null {
  const [first] = run.streams;
  if (first === undefined) return null;
  const chosen = run.streams.includes(param("stream")) ? param("stream") : first;
  if (!can("reader"))
    return (
      <section class="card" aria-label="Stream">
        <header>
          <h2>Stream</h2>
        </header>
        <p class="tok muted">hidden: needs role reader</p>
      </section>
    );
  return <OneStream key={`${run.id} ${chosen}`} run={run.id} name={chosen} names={run.streams} />;
}

interface OneProps {
  readonly run: string;
  readonly name: string;
  readonly names: readonly string[];
}

function OneStream({ run, name, names }: OneProps): JSX.Element {
  const [model, setModel] = useState<StreamModel>(EMPTY_STREAM);
  const [state, setState] = useState<{ readonly state: StreamState; readonly detail: string }>({
    state: "connecting",
    detail: "",
  });
  const arrivals = useRef<number[]>([]);
  const readUpTo = useRef(0);
  const text = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const aborter = new AbortController();
    void followStream({
      run,
      name,
      signal: aborter.signal,
      onFrames: (frames) => {
        const at = Date.now();
        arrivals.current.push(...frames.map(() => at));
        if (arrivals.current.length > 2000) arrivals.current.splice(0, arrivals.current.length - 2000);
        setModel((before) => withFrames(before, frames));
      },
      onState: (next, detail) => setState({ state: next, detail }),
    });
    return () => aborter.abort();
  }, []);
  useEffect(() => {
    const element = text.current;
    if (element !== null && follows.current) element.scrollTop = element.scrollHeight;
  }, [model]);
  const readNew = (): void => {
    const fresh = model.chunks.filter(({ offset }) => offset > readUpTo.current);
    readUpTo.current = model.offset;
    announcement.value =
      fresh.length === 0
        ? "Nothing new"
        : fresh
            .map((chunk) => chunk.text)
            .join("")
            .slice(-4000);
  };
  const passages = passagesOf(model.chunks);
  const isLive = state.state === "live";
  const usage = usageOf(model.calls);
  return (
    <section class="card" aria-label="Stream" id="stream">
      <header>
        <h2>Stream</h2>
        {names.length > 1 ? (
          <select
            class="stream-name mono"
            aria-label="Stream"
            value={name}
            onChange={(event) => setQuery({ stream: event.currentTarget.value })}
          >
            {names.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        ) : (
          <span class="muted mono any">{name}</span>
        )}
        <span class="grow" />
        <span class={`stream-state ${isLive ? "is-live" : ""}`}>
          <span class={`dot ${isLive ? "run" : state.state === "lost" || state.state === "refused" ? "bad" : "off"}`} />
          {stateText(state.state, state.detail)}, offset {count(model.offset)}
        </span>
      </header>
      {model.discarded.slice(-3).map(({ step, execution, chunks, repeatedBy, error }) => (
        <div key={`${step} ${repeatedBy}`} class="note">
          <Icon name="retry" />
          <span class="any">
            Execution {execution} of <code>{step}</code> ended without a result after {plural(chunks, "chunk")}
            {error !== undefined && `: ${error}`}. Its text was discarded. Execution {repeatedBy} repeats it with the
            same key.
          </span>
        </div>
      ))}
      {state.state === "refused" && <p class="note any">{state.detail}</p>}
      <div
        class="tok"
        role="log"
        aria-live="off"
        aria-label={`Stream ${name}`}
        tabIndex={0}
        ref={text}
        onScroll={(event) => {
          const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
          follows.current = scrollHeight - scrollTop - clientHeight < 24;
        }}
      >
        {model.dropped > 0 && <p class="muted step-name">{plural(model.dropped, "earlier chunk")} are not shown</p>}
        {model.chunks.length === 0 && (
          <p class="muted">{state.state === "ended" ? "The run emitted nothing." : "Nothing emitted yet."}</p>
        )}
        {passages.map((passage, index) => (
          <div key={passage.first} class="passage">
            {passage.step !== undefined && passage.step !== passages[index - 1]?.step && (
              <StepName
                passage={passage}
                call={model.calls.find(
                  ({ step, execution }) => step === passage.step && execution === passage.execution,
                )}
              />
            )}
            {passage.kind === "value" ? (
              <ul class="values">
                {passage.values.slice(-500).map((chunk) => (
                  <li key={chunk.offset}>
                    <span class="muted">{chunk.offset}</span> {chunk.text}
                  </li>
                ))}
              </ul>
            ) : (
              <p class={`said ${passage.kind}`}>
                {passage.kind !== "text" && <span class="muted">{PARTS[passage.kind]} </span>}
                {passage.text}
                {isLive && index === passages.length - 1 && <span class="caret" />}
              </p>
            )}
          </div>
        ))}
      </div>
      <div class="stats">
        <div>
          <b>{count(model.chunks.length + model.dropped)}</b>chunks
        </div>
        {usage === undefined ? (
          <div>
            <b>{count(model.chars)}</b>characters
          </div>
        ) : (
          <div>
            <b>{count(usage.tokens ?? 0)}</b>tokens{usage.usd !== undefined && `, ${amount("usd", usage.usd)}`}
          </div>
        )}
        <div>
          <b>{isLive ? `${Math.round(rateOf(arrivals.current, localNow()))} / s` : "—"}</b>rate
        </div>
        <div>
          <b>{count(model.discarded.reduce((sum, { chunks }) => sum + chunks, 0))}</b>discarded
        </div>
      </div>
      <div class="stream-foot">
        <Command text={command("stream", run, name)} />
        <Button small icon="eye" onClick={readNew}>
          Read new
        </Button>
      </div>
    </section>
  );
}

const PARTS: Readonly<Record<string, string>> = { reasoning: "Reasoning:", "tool-input": "Input of a tool:" };

/** `Operation(3) · model fast · 316 tokens · $0.00029`. */
function StepName({ passage, call }: { readonly passage: Passage; readonly call: ModelCall | undefined }): JSX.Element {
  const { model, usage, error } = call ?? {};
  const facts = [
    passage.step,
    passage.execution > 1 && `execution ${passage.execution}`,
    model !== undefined && model !== "" && `model ${model}`,
    usage?.tokens !== undefined && plural(usage.tokens, "token"),
    usage?.usd !== undefined && amount("usd", usage.usd),
    error !== undefined && `failed: ${error}`,
  ];
  return <p class="muted step-name any">{facts.filter((fact) => typeof fact === "string").join(" · ")}</p>;
}

function stateText(state: StreamState, detail: string): string {
  switch (state) {
    case "live":
      return "live";
    case "ended":
      return `ended: ${detail}`;
    case "lost":
      return "connection lost, resuming";
    case "refused":
      return "refused";
    case "connecting":
      return "connecting";
  }
}
