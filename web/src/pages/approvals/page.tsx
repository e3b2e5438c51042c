// Approvals: the promises that runs wait for, of all runs, and how recent ones were answered.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DefinitionBody } from "../../../../src/contract/definition.ts";
import type { OpenPromiseBody } from "../../../../src/contract/run.ts";
import { command } from "../../cli.ts";
import { now } from "../../clock.ts";
import { Button, Command, NowLine } from "../../components/controls.tsx";
import { ask } from "../../components/dialog.tsx";
import { Icon } from "../../components/icon.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { undoHeld } from "../../components/toast.tsx";
import { count, duration, plural } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { useResource } from "../../resource.ts";
import { href, param, setQuery } from "../../router.ts";
import { useTitle } from "../../title.ts";
import { askDecline, askRaise } from "./ask-budget.tsx";
import { answerTo, canAnswer, decide, progress, type Decided, type Decision } from "./decide.ts";
import { PromiseHistory } from "./history.tsx";
import { patchList, type OpenRow } from "./open-list.ts";
import { PromisePanel } from "./panel.tsx";
import { PromiseRow } from "./row.tsx";
import "./approvals.css";

interface Page<T> {
  readonly items: readonly T[];
  readonly next?: string;
}

export default function ApprovalsPage(): JSX.Element {
  useTitle("Approvals");
  const tab = param("tab") === "history" ? "history" : "open";
  const definition = param("definition");
  const sort = param("sort") === "run" ? "run" : "deadline";
  const definitions = useResource<Page<DefinitionBody>>("/v1/definitions", { query: { limit: 500 } });
  const names = (definitions.data?.items ?? [])
    .filter(({ ports }) => ports.some(({ kind }) => kind === "promise"))
    .map(({ name }) => name);
  return (
    <>
      <div class="head ap-head">
        <h1>Approvals</h1>
        <span class="seg" role="group" aria-label="Approvals">
          <button
            type="button"
            aria-pressed={tab === "open"}
            onClick={() => setQuery({ tab: undefined }, { push: true })}
          >
            Open
          </button>
          <button
            type="button"
            aria-pressed={tab === "history"}
            onClick={() => setQuery({ tab: "history", sel: undefined }, { push: true })}
          >
            History
          </button>
        </span>
        <span class="grow" />
        <label class="chip pick-chip">
          <span>definition</span>
          <select
            value={definition}
            onChange={(event) => setQuery({ definition: event.currentTarget.value, sel: undefined })}
          >
            <option value="">any</option>
            {[...new Set([...names, ...(definition === "" ? [] : [definition])])].map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        {tab === "open" && (
          <label class="chip pick-chip">
            <span>order</span>
            <select
              value={sort}
              onChange={(event) => setQuery({ sort: event.currentTarget.value === "run" ? "run" : undefined })}
            >
              <option value="deadline">ends soonest</option>
              <option value="run">oldest run</option>
            </select>
          </label>
        )}
      </div>
      {tab === "history" ? (
        <PromiseHistory all definition={definition} />
      ) : (
        <OpenPromises
          key={`${definition} ${sort}`}
          definition={definition}
          sort={sort}
          definitions={definitions.data?.items ?? []}
        />
      )}
    </>
  );
}

interface OpenProps {
  readonly definition: string;
  readonly sort: string;
  readonly definitions: readonly DefinitionBody[];
}

function OpenPromises({ definition, sort, definitions }: OpenProps): JSX.Element {
  const { data, problem, reload } = useResource<Page<OpenPromiseBody>>("/v1/promises", {
    query: { definition, sort, limit: 200 },
    when: ({ kind }) => kind === "promise",
  });
  const [shown, setShown] = useState<readonly OpenRow[] | undefined>(undefined);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [editing, setEditing] = useState(0);
  const lastPicked = useRef<string | undefined>(undefined);
  const list = useMemo(() => (data === undefined ? undefined : patchList(shown, data.items)), [data, shown]);
  useEffect(() => {
    if (data !== undefined && (shown === undefined || shown.length === 0))
      setShown(patchList(undefined, data.items).rows);
  }, [data, shown]);

  const rows = list?.rows ?? [];
  const answered = progress.value;
  const isOpen = (row: OpenRow): boolean => !row.gone && !answered.has(row.id);
  const sel = param("sel");
  const current = rows.find(({ id }) => id === sel);
  // A budget has no value to edit: its row says everything.
  const opened = current?.promise.kind === "budget" ? undefined : current;
  const select = (id: string | undefined): void => setQuery({ sel: id });
  const schemaOf = (promise: OpenPromiseBody): unknown =>
    definitions
      .find(({ name }) => name === promise.definition)
      ?.ports.find(({ kind, name }) => kind === "promise" && name === promise.name)?.schema;
  const answerOf = (promise: OpenPromiseBody, decision: Decision, reason = "") =>
    answerTo(promise, schemaOf(promise), decision, reason);
  const isSure = ({ promise }: OpenRow): boolean => answerOf(promise, "approve") !== undefined;

  const answer = (decision: Decision, row: OpenRow): void => {
    const { kind, run, show } = row.promise;
    if (kind === "budget") return decision === "approve" ? askRaise(run, show) : askDecline(run);
    const value = answerOf(row.promise, decision);
    if (value === undefined) {
      select(row.id);
      setEditing(editing + 1);
      return;
    }
    decide(decision, [{ promise: row.promise, answer: value }], "");
    if (row.id === sel) move(1);
  };
  const move = (by: number): void => {
    const at = rows.findIndex(({ id }) => id === sel);
    const next = rows[Math.max(0, Math.min(rows.length - 1, at === -1 ? 0 : at + by))];
    if (next === undefined) return;
    select(next.id);
    document.querySelector(`[data-id="${CSS.escape(next.id)}"]`)?.scrollIntoView({ block: "nearest" });
  };
  const pick = (id: string, range: boolean): void => {
    const next = new Set(picked);
    const [from, to] = [rows.findIndex((row) => row.id === lastPicked.current), rows.findIndex((row) => row.id === id)];
    const ids =
      range && from !== -1 ? rows.slice(Math.min(from, to), Math.max(from, to) + 1).map((row) => row.id) : [id];
    const isOn = !picked.has(id);
    for (const one of ids) {
      if (isOn) next.add(one);
      else next.delete(one);
    }
    lastPicked.current = id;
    setPicked(next);
  };
  const showNew = async (): Promise<void> => {
    await reload();
    setShown(undefined);
    setPicked(new Set());
  };
  const selected = rows.filter((row) => picked.has(row.id) && isOpen(row));
  const answerMany = (decision: Decision): void => {
    const withValue = (reason: string): Decided[] =>
      selected.flatMap(({ promise }) => {
        const value = answerOf(promise, decision, reason);
        return value === undefined ? [] : [{ promise, answer: value }];
      });
    const able = withValue("").length;
    const left = selected.length - able;
    ask({
      title: `${decision === "approve" ? "Approve" : "Reject"} ${plural(able, "promise")}`,
      text:
        left === 0
          ? "Each run continues with its answer."
          : `${plural(left, "other")} need a value that only a person can write; they stay open.`,
      confirm: decision === "approve" ? `Approve ${able}` : `Reject ${able}`,
      danger: decision === "reject",
      reason: true,
      run: async (reason) => {
        decide(decision, withValue(reason), reason);
        setPicked(new Set());
      },
    });
  };

  const onCurrent =
    (run: (row: OpenRow) => void): (() => void) =>
    () => {
      if (current !== undefined && isOpen(current)) run(current);
    };
  const mayAnswer = (): boolean => current !== undefined && canAnswer(current.promise);
  useKeys("Approvals", [
    { keys: "j", label: "next", run: () => move(1) },
    { keys: "k", label: "previous", run: () => move(-1) },
    { keys: "a", label: "approve", run: onCurrent((row) => answer("approve", row)), when: mayAnswer },
    { keys: "Shift+A", label: "reject", run: onCurrent((row) => answer("reject", row)), when: mayAnswer },
    { keys: "x", label: "select", run: onCurrent((row) => pick(row.id, false)) },
    { keys: "Shift+X", label: "select up to here", run: onCurrent((row) => pick(row.id, true)) },
    { keys: "Mod+z", label: "undo within 5 s", run: undoHeld },
    { keys: ".", label: "show new", run: () => void showNew() },
    { keys: "Escape", label: "close the panel", run: () => select(undefined), when: () => sel !== "" },
  ]);

  if (problem !== undefined && data === undefined)
    return (
      <section class="card">
        <div class="state">
          <h2>The open promises cannot be read</h2>
          <p>{problem.detail}</p>
        </div>
      </section>
    );
  if (list === undefined) return <p class="muted">Loading …</p>;
  return (
    <>
      <FirstLine open={rows.filter(isOpen).map(({ promise }) => promise)} />
      <div class={opened === undefined ? "ap-split alone" : "ap-split"}>
        <div class="ap-list">
          {list.fresh > 0 && (
            <Button icon="up" keys="." class="fresh" onClick={showNew}>
              {plural(list.fresh, "new approval")}
            </Button>
          )}
          {rows.length === 0 ? (
            <Nothing definition={definition} />
          ) : (
            <section class="card" aria-label="Open">
              <ul>
                {rows.map((row) => (
                  <PromiseRow
                    key={row.id}
                    row={row}
                    isCurrent={row.id === sel}
                    isSelected={picked.has(row.id)}
                    isSure={isSure(row)}
                    onSelect={(range) => pick(row.id, range)}
                    onOpen={() => select(row.id === sel ? undefined : row.id)}
                    onApprove={() => answer("approve", row)}
                    onReject={() => answer("reject", row)}
                  />
                ))}
              </ul>
              {data?.next !== undefined && (
                <p class="none muted">
                  More than {count(rows.length)} are open. Choose a definition to see the others.
                </p>
              )}
            </section>
          )}
          <PromiseHistory all={false} definition={definition} />
        </div>
        {opened !== undefined && (
          <PromisePanel
            key={opened.id}
            promise={opened.promise}
            schema={schemaOf(opened.promise)}
            focusEditor={editing > 0}
            onClose={() => select(undefined)}
            onDecided={() => move(1)}
          />
        )}
      </div>
      {selected.length > 0 && (
        <div class="ap-bulk" role="region" aria-label="Selected">
          <b>{count(selected.length)} selected</b>
          <Button acts icon="check" onClick={() => answerMany("approve")}>
            Approve
          </Button>
          <Button acts kind="danger" onClick={() => answerMany("reject")}>
            Reject
          </Button>
          <Button kind="ghost" icon="x" label="Select none" onClick={() => setPicked(new Set())} />
        </div>
      )}
      <KeyRow
        keys={[
          ["J K", "move"],
          ["A", "approve"],
          ["⇧A", "reject"],
          ["E", "edit the value"],
          ["X", "select many"],
          ["Ctrl Z", "undo within 5 s"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

function FirstLine({ open }: { readonly open: readonly OpenPromiseBody[] }): JSX.Element | null {
  if (open.length === 0) return null;
  const ends = open.flatMap(({ deadline }) => (deadline === undefined ? [] : [Date.parse(deadline)]));
  const left = ends.length === 0 ? undefined : Math.min(...ends) - now.value;
  return (
    <NowLine
      status="waiting"
      lead={`${plural(open.length, "promise waits", "promises wait")} for a person.`}
      command={command("promises")}
    >
      {left === undefined
        ? "None has a time limit."
        : left > 0
          ? `The first times out in ${duration(left)}.`
          : "The first times out now."}
    </NowLine>
  );
}

function Nothing({ definition }: { readonly definition: string }): JSX.Element {
  return (
    <section class="card">
      <div class="state">
        <Icon name="check" />
        <h2>No run waits for a person{definition === "" ? "" : ` in ${definition}`}</h2>
        <p>
          Code asks a person with <code>ctx.promise("approval", {"{ show }"})</code>. Its run waits without a worker,
          and appears here with what the code shows.
        </p>
        <Command text={command("promises")} />
        {definition !== "" && (
          <a class="link" href={href("/approvals")}>
            All definitions
          </a>
        )}
      </div>
    </section>
  );
}
