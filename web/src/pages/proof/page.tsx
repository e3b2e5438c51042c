// Proof: whether the journal of a run is intact and whether the code of this server would write it again. It changes nothing.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DefinitionBody } from "../../../../src/contract/definition.ts";
import type { VerdictBody } from "../../../../src/contract/history.ts";
import type { RunDetail, RunSummary } from "../../../../src/contract/run.ts";
import { apiUrl, at, post, Problem } from "../../api.ts";
import { command } from "../../cli.ts";
import { Button, copyText, NowLine } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { Badge, Status, statusWord } from "../../components/status.tsx";
import { capital, plural } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { useResource } from "../../resource.ts";
import { href, hrefWith, param, runPath, setQuery } from "../../router.ts";
import { can } from "../../site.ts";
import { useTitle } from "../../title.ts";
import { VerdictView } from "./verdict-view.tsx";
import { VerifyMany } from "./verify-many.tsx";
import "./proof.css";

export default function ProofPage(): JSX.Element {
  const run = param("run");
  useTitle(run === "" ? "Proof" : `Verify ${run}`);
  return run === "" ? <Choose /> : <VerifyRun key={run} id={run} />;
}

interface Items<T> {
  readonly items: readonly T[];
}

function Choose(): JSX.Element {
  const [id, setId] = useState("");
  const stopped = useResource<Items<RunSummary>>("/v1/runs", {
    query: { status: ["determinism_violation"], limit: 20 },
    when: ({ kind }) => kind === "run",
    every: 2000,
  });
  const definitions = useResource<Items<DefinitionBody>>("/v1/definitions", { query: { limit: 500 } });
  const items = stopped.data?.items ?? [];
  const registered = (definitions.data?.items ?? []).filter((one) => one.registered);
  const chosen =
    param("definition") || registered.find(({ versions }) => versions.some(({ live }) => live > 0))?.name || "";
  return (
    <>
      <div class="head">
        <h1>Proof</h1>
      </div>
      {items.length > 0 ? (
        <NowLine status="stopped" lead={`${plural(items.length, "run")} stopped because code and journal differ.`}>
          A run that differs stops before it takes a wrong step.
        </NowLine>
      ) : (
        stopped.data !== undefined && (
          <NowLine status="completed" lead="No live run differs from its code, as far as workers have replayed them.">
            Verify runs before a deployment to know it of all.
          </NowLine>
        )
      )}
      <section class="card" aria-label="Verify a run">
        <header>
          <h2>Verify a run</h2>
          <span class="muted">calls nothing outside, writes nothing</span>
        </header>
        <form
          class="pad row row-w"
          onSubmit={(event) => {
            event.preventDefault();
            if (id.trim() !== "") setQuery({ run: id.trim() }, { push: true });
          }}
        >
          <label class="field grow">
            <span class="eyebrow">Id of the run</span>
            <input value={id} onInput={(event) => setId(event.currentTarget.value)} />
          </label>
          <Button kind="primary" type="submit" icon="shield" class="end">
            Verify
          </Button>
        </form>
        {items.length > 0 && (
          <ul class="stops">
            {items.map((one) => (
              <li key={one.id}>
                <Status status={one.status} word="" />
                <a class="link mono any" href={hrefWith({ run: one.id })}>
                  {one.id}
                </a>
                <span class="muted">
                  {one.definition} v{one.version}
                </span>
              </li>
            ))}
          </ul>
        )}
      </section>
      {registered.length > 0 && (
        <div class="row row-w pick-def">
          <label class="chip pick-chip">
            <span>definition</span>
            <select value={chosen} onChange={(event) => setQuery({ definition: event.currentTarget.value })}>
              {registered.map(({ name }) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
        </div>
      )}
      {chosen !== "" && can("reader") && <VerifyMany key={chosen} definition={chosen} />}
      <KeyRow
        keys={[
          ["G P", "this page"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

interface Outcome {
  readonly run: string;
  readonly verdict?: VerdictBody;
  readonly problem?: Problem;
}

/** The last verdict, so that Back shows it again without another replay. */
const last = signal<Outcome | undefined>(undefined);

async function verify(id: string): Promise<void> {
  try {
    last.value = { run: id, verdict: await post<VerdictBody>(at`/v1/runs/${id}/verify`, {}) };
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown;
    last.value = { run: id, problem: thrown };
  }
}

function VerifyRun({ id }: { readonly id: string }): JSX.Element {
  const { data: run, problem } = useResource<RunDetail>(at`/v1/runs/${id}`, {
    when: ({ kind, data }) => kind === "run" && data["id"] === id,
  });
  const outcome = last.value?.run === id ? last.value : undefined;
  const mayVerify = can("reader");
  useEffect(() => {
    if (mayVerify && last.peek()?.run !== id) void verify(id);
  }, [id, mayVerify]);
  const download = (): void => {
    const link = document.createElement("a");
    link.href = apiUrl(at`/v1/runs/${id}/journal.jsonl`);
    link.download = `${id}.jsonl`;
    link.click();
  };
  const cli = `${command("verify", id)} <file>`;
  useKeys("Proof", [
    { keys: "v", label: "verify again", run: () => void verify(id), when: () => mayVerify },
    { keys: "d", label: "download the journal", run: download, when: () => mayVerify },
    { keys: "c", label: "copy as CLI", run: () => void copyText(cli) },
    { keys: "Escape", label: "back to Proof", run: () => setQuery({ run: undefined }, { push: true }) },
  ]);
  if (problem !== undefined && run === undefined)
    return (
      <section class="card">
        <div class="state">
          <h1>The run cannot be read</h1>
          <p class="any">{problem.detail}</p>
          <a class="link" href={href("/proof")}>
            Proof
          </a>
        </div>
      </section>
    );
  return (
    <>
      <div class="crumb">
        <a href={href("/proof")}>Proof</a>
        <Icon name="right" />
        {run !== undefined && <a href={href("/proof", { definition: run.definition })}>{run.definition}</a>}
      </div>
      <div class="rh">
        <h1 class="any">
          Verify{" "}
          <a class="mono" href={href(runPath(id))}>
            {id}
          </a>
        </h1>
        {run !== undefined && <Badge status={run.status} word={badgeWord(run.status)} />}
        <span class="grow" />
        <span class="row acts">
          {mayVerify && (
            <Button icon="down" onClick={download}>
              Journal
            </Button>
          )}
          <Button icon="term" keys="c" onClick={() => copyText(cli)}>
            Copy as CLI
          </Button>
          {mayVerify && (
            <Button kind="primary" icon="retry" keys="v" acts onClick={() => verify(id)}>
              Verify again
            </Button>
          )}
        </span>
      </div>
      {!mayVerify && <p class="muted">Verifying reads payloads: it needs the role reader.</p>}
      {mayVerify && outcome === undefined && (
        <NowLine status="running" lead="Replaying the run.">
          The code of this server runs against the journal; nothing outside is called.
        </NowLine>
      )}
      {outcome?.problem !== undefined && (
        <NowLine
          status="failed"
          lead="The run was not verified."
          {...(outcome.problem.hint !== undefined && { command: outcome.problem.hint })}
        >
          {outcome.problem.detail}
        </NowLine>
      )}
      {outcome?.verdict !== undefined && run !== undefined && (
        <>
          <FirstLine verdict={outcome.verdict} run={run} cli={cli} />
          <VerdictView verdict={outcome.verdict} run={run} />
        </>
      )}
      {run !== undefined && run.registered && mayVerify && (
        <div class="gap-top">
          <VerifyMany definition={run.definition} />
        </div>
      )}
      <KeyRow
        keys={[
          ["V", "verify again"],
          ["D", "download journal"],
          ["C", "copy as CLI"],
          ["Esc", "back"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

const badgeWord = (status: string): string =>
  status === "determinism_violation" || status === "blocked" ? `Stopped: ${status}` : statusWord(status);

function FirstLine(props: {
  readonly verdict: VerdictBody;
  readonly run: RunDetail;
  readonly cli: string;
}): JSX.Element {
  const { verdict, run, cli } = props;
  const isStopped = run.status === "determinism_violation" || run.status === "blocked";
  if (verdict.status === "same")
    return (
      <NowLine
        status="completed"
        lead="Code and journal agree."
        command={cli}
        {...(isStopped && can("operator") && { actions: <Resume id={run.id} /> })}
      >
        The code of this server makes the same {plural(verdict.entries, "entry", "entries")} again.
        {isStopped && " The run is stopped and can be resumed."}
      </NowLine>
    );
  if (verdict.status === "damaged")
    return (
      <NowLine status="failed" lead="The journal is damaged." command={cli}>
        {capital((verdict.differences[0]?.message ?? "its hash chain does not match").replace(/[.\s]+$/, ""))}.
      </NowLine>
    );
  const [difference] = verdict.differences;
  return (
    <NowLine
      status="stopped"
      lead={`Code and journal differ at entry ${verdict.agreed + 1}.`}
      command={cli}
      aside={<span class="soft only-l">exit code 4 until the difference is gone</span>}
      {...(isStopped && can("operator") && { actions: <Resume id={run.id} disabled /> })}
    >
      <span class="any">
        {difference === undefined ? "" : `${difference.where}: ${difference.message.replace(/[.\s]+$/, "")}.`}
      </span>
      {isStopped
        ? " The run is stopped and nothing was written. It resumes when the code agrees again."
        : " A worker with this code would stop the run; nothing was written."}
    </NowLine>
  );
}

function Resume({ id, disabled = false }: { readonly id: string; readonly disabled?: boolean }): JSX.Element {
  return (
    <Button acts icon="play" disabled={disabled} onClick={() => post(at`/v1/runs/${id}/resume`, {})}>
      Resume
    </Button>
  );
}
