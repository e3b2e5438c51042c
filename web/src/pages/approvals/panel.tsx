// Panel: one open promise: what it asks for, the value that is sent, the reason, the same answer as a command, a one-time link.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { checkJson, type JsonIssue } from "../../../../src/contract/check-json.ts";
import { templateOf } from "../../../../src/contract/approval-answer.ts";
import type { JsonSchema } from "../../../../src/contract/json-schema.ts";
import type { OpenPromiseBody } from "../../../../src/contract/run.ts";
import { post } from "../../api.ts";
import { now } from "../../clock.ts";
import { Button, Command, copyText } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { Hidden, Json } from "../../components/json.tsx";
import { clockTime, longTime, plural, shortTime, tickingDuration } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { href, runPath } from "../../router.ts";
import { can } from "../../site.ts";
import { answerFor, decide } from "./decide.ts";
import { countEdits, diffLines } from "./line-diff.ts";
import { commandOf, textOfPromise, type Answer } from "./promise-text.ts";

interface PanelProps {
  readonly promise: OpenPromiseBody;
  /** The JSON Schema of the port; undefined: the server does not know one. */
  readonly schema: unknown;
  readonly focusEditor: boolean;
  readonly onClose: () => void;
  readonly onDecided: () => void;
}

/**
 * The text that editing starts with: what Approve sends, else an example that fits the schema. A port that takes an input of the person
 * starts with the one that is shown.
 */
export function proposal(schema: unknown, show: unknown): string {
  const answer = answerFor(schema, "approve", "");
  const value =
    answer !== undefined && "value" in answer ? answer.value : schema === undefined ? { ok: true } : templateOf(schema);
  const shown = hasInput((schema as { properties?: unknown } | undefined)?.properties) && hasInput(show);
  return JSON.stringify(shown ? { ...(value as object), input: show.input } : value, undefined, 2);
}

function hasInput(value: unknown): value is { readonly input: unknown } {
  return typeof value === "object" && value !== null && Object.hasOwn(value, "input");
}

interface Parsed {
  readonly value?: unknown;
  readonly issues: readonly JsonIssue[];
}

function parse(text: string, schema: unknown): Parsed {
  if (text.trim() === "") return { value: undefined, issues: [] };
  try {
    const value: unknown = JSON.parse(text);
    const issues = typeof schema === "object" && schema !== null ? checkJson(schema as JsonSchema, value) : [];
    return { value, issues };
  } catch (thrown) {
    return { issues: [{ path: "$", message: `is no JSON: ${(thrown as Error).message}` }] };
  }
}

export function PromisePanel({ promise, schema, focusEditor, onClose, onDecided }: PanelProps): JSX.Element {
  const { title, why } = textOfPromise(promise);
  const proposed = proposal(schema, promise.show);
  const [edited, setEdited] = useState<string | undefined>(undefined);
  const [reason, setReason] = useState("");
  const editor = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (focusEditor) editor.current?.focus();
  }, [focusEditor]);
  const text = edited ?? proposed;
  const { value, issues } = parse(text, schema);
  const isEdited = edited !== undefined && edited !== proposed;
  const isSure = answerFor(schema, "approve", reason) !== undefined;
  // The reason may be a part of the value that the buttons send.
  const approveWith: Answer = isEdited || !isSure ? { value } : answerFor(schema, "approve", reason)!;
  const rejectWith = answerFor(schema, "reject", reason)!;
  const approve = (): void => {
    if (issues.length > 0) return;
    decide("approve", [{ promise, answer: approveWith }], reason);
    onDecided();
  };
  const reject = (): void => {
    decide("reject", [{ promise, answer: rejectWith }], reason);
    onDecided();
  };
  useKeys("This approval", [
    { keys: "Mod+enter", label: "approve with this value", run: approve, when: () => can("approver") },
    { keys: "e", label: "edit the value", run: () => editor.current?.focus() },
  ]);
  const lines = isEdited ? diffLines(proposed, text) : [];
  return (
    <aside class="card ap-panel" aria-label={title}>
      <header>
        <h2 class="grow any">{title}</h2>
        <Button kind="ghost" small icon="x" label="Close the panel" onClick={onClose} />
      </header>
      <section>
        <h3>What the code asks for</h3>
        {why !== "" && <p class="any">{why}</p>}
        <dl class="kv asked">
          <dt>Run</dt>
          <dd class="any">
            <a class="link mono" href={href(runPath(promise.run))}>
              {promise.run}
            </a>{" "}
            <span class="muted">waits at port {promise.name}</span>
          </dd>
          <dt>Open since</dt>
          <dd>
            {shortTime(promise.createdAt, now.value)}, for {tickingDuration(now.value - Date.parse(promise.createdAt))}
          </dd>
          <dt>Times out</dt>
          <dd>{promise.deadline === undefined ? "never" : longTime(promise.deadline, now.value)}</dd>
        </dl>
      </section>
      {promise.hidden?.includes("show") === true ? (
        <section>
          <h3>Shown by the code</h3>
          <Hidden />
        </section>
      ) : (
        promise.show !== undefined && (
          <section>
            <h3>Shown by the code</h3>
            <Json value={promise.show} label="what the code shows" />
          </section>
        )
      )}
      {can("approver") && (
        <>
          <section>
            <h3>
              <label for="answer">Value of port {promise.name}</label>
              <span class="grow" />
              {isEdited && (
                <span class="tag edited">
                  <Icon name="edit" />
                  edited, {plural(countEdits(lines), "line")}
                </span>
              )}
            </h3>
            <textarea
              id="answer"
              ref={editor}
              class="value"
              spellcheck={false}
              rows={Math.min(14, Math.max(3, text.split("\n").length))}
              aria-describedby="answer-check"
              aria-invalid={issues.length > 0}
              value={text}
              onInput={(event) => setEdited(event.currentTarget.value)}
            />
            {isEdited && (
              <div class="ed" role="region" aria-label="Changed lines" tabIndex={0}>
                {lines
                  .filter(({ kind }) => kind !== "same")
                  .slice(0, 20)
                  .map((line, index) => (
                    <div key={index} class={line.kind}>
                      <span>{line.kind === "add" ? "+" : "−"}</span>
                      <span>{line.text}</span>
                    </div>
                  ))}
              </div>
            )}
            <Check schema={schema} issues={issues} port={promise.name} />
          </section>
          <section>
            <h3>
              <label for="reason">Reason, kept in the journal</label>
            </h3>
            <input
              id="reason"
              class="text"
              maxLength={1000}
              value={reason}
              onInput={(event) => setReason(event.currentTarget.value)}
            />
            <div class="row row-w answers">
              <Button kind="primary" acts keys="Mod+enter" disabled={issues.length > 0} onClick={approve}>
                {isEdited ? "Approve with edit" : isSure ? "Approve" : "Approve with this value"}
              </Button>
              <Button acts keys="Shift+A" onClick={reject}>
                Reject
              </Button>
              <span class="grow" />
              {isEdited && (
                <Button kind="ghost" small onClick={() => setEdited(undefined)}>
                  Undo edit
                </Button>
              )}
            </div>
            <p class="muted small">
              Reject{" "}
              {"value" in rejectWith ? (
                <>
                  sends <code>{JSON.stringify(rejectWith.value)}</code>
                </>
              ) : (
                "throws an error in the code that waits, with the reason as its message"
              )}
              .
            </p>
          </section>
        </>
      )}
      <section>
        <h3>Same answer from a shell</h3>
        <Command text={commandOf(promise, approveWith, reason)} />
        {can("approver") && <OneTimeLink promise={promise} />}
      </section>
    </aside>
  );
}

function Check(props: {
  readonly schema: unknown;
  readonly issues: readonly JsonIssue[];
  readonly port: string;
}): JSX.Element {
  const { schema, issues, port } = props;
  return (
    <div id="answer-check" role="status">
      {issues.length > 0 ? (
        issues.slice(0, 5).map(({ path, message }) => (
          <p key={path + message} class="bad any">
            <code>{path}</code> {message}
          </p>
        ))
      ) : schema === undefined ? (
        <p class="muted small">Port {port} has no schema: check the value yourself.</p>
      ) : (
        <p class="ok">
          <Icon name="check" />
          Valid against the schema of port {port}
        </p>
      )}
    </div>
  );
}

interface Link {
  readonly url: string;
  readonly expiresAt?: string;
}

/** Makes a link for a person without a token; it answers once. */
function OneTimeLink({ promise }: { readonly promise: OpenPromiseBody }): JSX.Element {
  const [link, setLink] = useState<Link | undefined>(undefined);
  const make = async (): Promise<void> => {
    const { run, name: port, key } = promise;
    const made = await post<Link>(`/v1/runs/${encodeURIComponent(run)}/links`, {
      port,
      ...(key !== undefined && { key }),
    });
    setLink(made);
    await copyText(made.url, "Copied the link");
  };
  return (
    <p class="soft row link-row">
      <Icon name="link" />
      <span class="grow">
        One-time link for a person without access
        {link?.expiresAt !== undefined && `, valid until ${clockTime(link.expiresAt).slice(0, 5)}`}
      </span>
      <Button small acts onClick={make}>
        Copy link
      </Button>
    </p>
  );
}
