// Verdict view: tiles, journal and code side by side, the lines of the source, and how to make them agree.

import type { JSX } from "preact";
import type { VerdictBody } from "../../../../src/contract/history.ts";
import type { RunDetail } from "../../../../src/contract/run.ts";
import { command } from "../../cli.ts";
import { now } from "../../clock.ts";
import { Command } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { Status } from "../../components/status.tsx";
import { longTime } from "../../format.ts";
import { foldText, rowsOf, sidesOf, tilesOf, type SideBySideRow } from "./verdict-model.ts";

export function VerdictView({ verdict, run }: { readonly verdict: VerdictBody; readonly run: RunDetail }): JSX.Element {
  return (
    <>
      <section class="card chk" aria-label="Checks">
        {tilesOf(verdict, run.endedAt !== undefined).map(({ status, title, text }) => (
          <div key={title}>
            <Status status={status} word={title} />
            <p>{text}</p>
          </div>
        ))}
      </section>
      <SideBySide verdict={verdict} run={run} />
      {verdict.status === "different" && (
        <div class="low">
          <Source verdict={verdict} />
          <Advice verdict={verdict} run={run} />
        </div>
      )}
    </>
  );
}

function SideBySide({ verdict, run }: { readonly verdict: VerdictBody; readonly run: RunDetail }): JSX.Element {
  const rows = rowsOf(verdict);
  const fold = foldText(verdict);
  const sides = sidesOf(verdict);
  return (
    <section class="card" aria-label="Journal and code side by side">
      <div class="sbs">
        <div class="hd">
          Journal recorded
          <span>
            {run.definition} v{run.version}, {longTime(run.createdAt, now.value)}
          </span>
        </div>
        <div class="mid top-mid" />
        <div class="hd">
          Code asks
          <span>the code of this server</span>
        </div>
        {fold !== "" && <div class="foldr">{fold}</div>}
        {rows.map((row, index) => (
          <Row key={row.entry?.seq ?? `code ${index}`} row={row} sides={sides} />
        ))}
        {verdict.status === "same" && rows.length === 0 && (
          <div class="foldr">all {verdict.entries} entries agree with the code</div>
        )}
      </div>
    </section>
  );
}

function Row(props: {
  readonly row: SideBySideRow;
  readonly sides: { readonly journal: string; readonly code: string } | undefined;
}): JSX.Element {
  const { row, sides } = props;
  const { entry } = row;
  if (row.kind === "different")
    return (
      <>
        <div class="en L hit">
          <span class="q">{entry?.seq ?? "—"}</span>
          <span class="mono">
            <b>{entry?.type ?? "no further entry"}</b>
          </span>
          <span class="dt any">
            {entry?.command !== undefined && `${entry.command}\n`}
            <mark>{sides?.journal}</mark>
          </span>
        </div>
        <div class="mid bad-mid">
          <Icon name="x" />
          <span class="vh">different</span>
        </div>
        <div class="en c2 R hit">
          <span class="mono">
            <b>the code</b>
            {row.place !== "" && <span class="place any">{row.place}</span>}
          </span>
          <span class="dt any">
            <mark>{sides?.code}</mark>
            {`\n${row.code}`}
          </span>
        </div>
      </>
    );
  const isSame = row.kind === "same";
  return (
    <>
      <div class={`en L ${isSame ? "same" : "un2"}`}>
        <span class="q">{entry!.seq}</span>
        <span class="mono">{entry!.type}</span>
        <span class="mono cut">
          {[entry!.line.name, entry!.line.text]
            .filter((part) => part !== "")
            .join(" · ")
            .slice(0, 300)}
        </span>
      </div>
      <div class={isSame ? "mid" : "mid un"}>
        {isSame ? (
          <>
            <Icon name="check" />
            <span class="vh">same</span>
          </>
        ) : (
          "·"
        )}
      </div>
      <div class={`en c2 R ${isSame ? "same" : "un2"}`}>
        <span class="mono cut">{row.code}</span>
        <span class="mono">{row.place}</span>
      </div>
    </>
  );
}

function Source({ verdict }: { readonly verdict: VerdictBody }): JSX.Element {
  const { source, differences } = verdict;
  if (source === undefined)
    return (
      <section class="card">
        <header>
          <h2>Where the code asks</h2>
        </header>
        <p class="pad soft">
          {differences[0]?.place === undefined
            ? "The replay does not know the line."
            : `${differences[0].place}. This server cannot read the file.`}
        </p>
      </section>
    );
  return (
    <section class="card">
      <header>
        <h2 class="any">{source.file}</h2>
        <span class="muted">where the code asks</span>
      </header>
      <div class="src-lines" tabIndex={0} role="region" aria-label="Source">
        {source.lines.map((text, index) => (
          <div key={index} class={source.first + index === source.line ? "at" : ""}>
            <span>{source.first + index}</span>
            <span>{text}</span>
          </div>
        ))}
      </div>
    </section>
  );
}

function Advice({ verdict, run }: { readonly verdict: VerdictBody; readonly run: RunDetail }): JSX.Element {
  const isStopped = run.status === "determinism_violation" || run.status === "blocked";
  const [difference] = verdict.differences;
  return (
    <section class="card">
      <header>
        <h2>Make them agree</h2>
      </header>
      <div class="opt">
        <i>1</i>
        <div>
          <b class="strong">Keep both behaviors</b>
          <p>Old runs keep the recorded order, new runs take the new one.</p>
          <div class="code" tabIndex={0} role="region" aria-label="Code">
            <span class="k">if</span> (ctx.patched(<span class="s">"new-order"</span>)) {"{ … }"}{" "}
            <span class="k">else</span> {"{ … }"}
          </div>
        </div>
      </div>
      <div class="opt">
        <i>2</i>
        <div>
          <b class="strong">{isStopped ? "Restore the code, then resume" : "Restore the code before you deploy it"}</b>
          <div>
            <Command text={isStopped ? command("resume", run.id) : `${command("verify", run.id)} <file>`} />
          </div>
        </div>
      </div>
      {difference !== undefined && run.kind !== "flow" && (
        <div class="opt">
          <i>3</i>
          <div>
            <b class="strong">Compute it again as a new run</b>
            <p>The fork shares what agrees, and continues with the new code.</p>
            <div>
              <Command
                text={
                  run.kind === "graph"
                    ? command("fork", run.id, "--step", String(Math.max(0, (difference.step ?? 1) - 1)))
                    : command("fork", run.id, "--at", difference.where)
                }
              />
            </div>
          </div>
        </div>
      )}
    </section>
  );
}
