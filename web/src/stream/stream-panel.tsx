// Stream panel: what a run emits, live. A repeated execution discards the text of the one before and says so. The text is no live region:
// a screen reader reads new text when the person asks for it.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RunDetail } from "../../../src/contract/run.ts";
import { command } from "../cli.ts";
import { localNow } from "../clock.ts";
import { announcement, Button, Command } from "../components/controls.tsx";
import { Icon } from "../components/icon.tsx";
import { count, plural } from "../format.ts";
import { param, setQuery } from "../router.ts";
import { can } from "../site.ts";
import { followStream, type StreamState } from "./follow-stream.ts";
import { EMPTY_STREAM, passagesOf, rateOf, withFrames, type StreamModel } from "./stream-model.ts";
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
  const firstAt = useRef(0);
  const readUpTo = useRef(0);
  const text = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  useEffect(() => {
    const aborter = new AbortController();
    const opened = Date.now();
    void followStream({
      run,
      name,
      signal: aborter.signal,
      onFrames: (frames) => {
        const at = Date.now();
        firstAt.current ||= at - opened;
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
      {model.discarded.slice(-3).map(({ step, execution, chunks, repeatedBy }) => (
        <div key={`${step} ${repeatedBy}`} class="note">
          <Icon name="retry" />
          <span class="any">
            Execution {execution} of <code>{step}</code> ended without a result after {plural(chunks, "chunk")}. Its
            text was discarded. Execution {repeatedBy} repeats it with the same key.
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
              <p class="muted step-name any">
                {passage.step}
                {passage.execution > 1 && ` · execution ${passage.execution}`}
              </p>
            )}
            {passage.isText ? (
              <p class="said">
                {passage.text}
                {isLive && index === passages.length - 1 && <span class="caret" />}
              </p>
            ) : (
              <ul class="values">
                {passage.values.slice(-500).map((chunk) => (
                  <li key={chunk.offset}>
                    <span class="muted">{chunk.offset}</span> {chunk.text}
                  </li>
                ))}
              </ul>
            )}
          </div>
        ))}
      </div>
      <div class="stats">
        <div>
          <b>{count(model.chunks.length + model.dropped)}</b>chunks
        </div>
        <div>
          <b>{count(model.chars)}</b>characters
        </div>
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
