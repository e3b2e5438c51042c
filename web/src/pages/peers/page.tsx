// Peers: how the exchange with other sites goes, and histories that contradict each other. Only of a federated site.

import type { JSX } from "preact";
import type { ConflictBody } from "../../../../src/contract/operations/site.ts";
import type { PeerBody } from "../../../../src/contract/site.ts";
import { command } from "../../cli.ts";
import { now } from "../../clock.ts";
import { Button, Command, copyText, NowLine } from "../../components/controls.tsx";
import { Icon } from "../../components/icon.tsx";
import { Json } from "../../components/json.tsx";
import { KeyRow } from "../../components/key-help.tsx";
import { Status } from "../../components/status.tsx";
import { capital, count, plural, shortTime, tickingDuration } from "../../format.ts";
import { useKeys } from "../../keys.ts";
import { usePolling } from "../../polling.ts";
import { useResource } from "../../resource.ts";
import { param, setQuery } from "../../router.ts";
import { useTitle } from "../../title.ts";
import "./peers.css";

interface Peers {
  readonly origin?: string;
  readonly waiting: number;
  readonly items: readonly PeerBody[];
}
interface Conflicts {
  readonly items: readonly ConflictBody[];
}

const STATES: Readonly<Record<PeerBody["state"], { readonly status: string; readonly word: string }>> = {
  in_step: { status: "completed", word: "In step" },
  behind: { status: "running", word: "Behind" },
  unreachable: { status: "failed", word: "Unreachable" },
  forked: { status: "stopped", word: "Forked" },
  never_met: { status: "queued", word: "Never met" },
};
const URGENCY: readonly PeerBody["state"][] = ["forked", "unreachable", "never_met", "behind", "in_step"];

export default function PeersPage(): JSX.Element {
  useTitle("Peers");
  const all = param("all") !== "";
  const peers = useResource<Peers>("/v1/peers");
  const conflicts = useResource<Conflicts>("/v1/conflicts", { query: { all } });
  usePolling(() => Promise.all([peers.reload(), conflicts.reload()]), 5000);
  useKeys("Peers", [{ keys: "c", label: "copy as CLI", run: () => void copyText(command("fed", "status")) }]);
  const problem = peers.problem ?? conflicts.problem;
  return (
    <>
      <div class="head">
        <h1>Peers</h1>
        {peers.data?.origin !== undefined && (
          <span class="muted any">
            this site is <code>{peers.data.origin}</code>
          </span>
        )}
        <span class="grow" />
        <Button icon="term" keys="c" onClick={() => copyText(command("fed", "status"))}>
          Copy as CLI
        </Button>
      </div>
      {peers.data === undefined ? (
        problem === undefined ? (
          <p class="muted">Loading …</p>
        ) : (
          <p class="bad">{problem.detail}</p>
        )
      ) : peers.data.origin === undefined ? (
        <section class="card">
          <div class="state">
            <Icon name="peers" />
            <h2>This store is not federated</h2>
            <p>A federated site exchanges signed records of its runs with other sites.</p>
            <Command text="reprise peer add <name> <url>" />
          </div>
        </section>
      ) : (
        <>
          <FirstLine peers={peers.data} conflicts={conflicts.data?.items ?? []} />
          <PeerTable peers={peers.data.items} />
          <ConflictList conflicts={conflicts.data?.items ?? []} all={all} />
        </>
      )}
      <KeyRow
        keys={[
          ["C", "copy as CLI"],
          ["?", "all keys"],
        ]}
      />
    </>
  );
}

function FirstLine({
  peers,
  conflicts,
}: {
  readonly peers: Peers;
  readonly conflicts: readonly ConflictBody[];
}): JSX.Element {
  const open = conflicts.filter(({ state }) => state === "open");
  const [first] = open;
  if (first !== undefined)
    return (
      <NowLine
        status="stopped"
        lead={`${plural(open.length, "conflict")} ${open.length === 1 ? "is" : "are"} open.`}
        command={first.command ?? command("fed", "conflicts")}
      >
        <span class="any">
          {capital(first.kind)} of <code>{first.subject}</code>
          {first.peer !== undefined && ` with ${first.peer}`}.
        </span>
      </NowLine>
    );
  const worst = peers.items.toSorted((a, b) => URGENCY.indexOf(a.state) - URGENCY.indexOf(b.state))[0];
  if (worst === undefined)
    return (
      <NowLine status="queued" lead="This site has no peer." command="reprise peer add <name> <url>">
        Its records stay here.
      </NowLine>
    );
  if (worst.state === "in_step")
    return (
      <NowLine status="completed" lead="All peers are in step.">
        {peers.waiting > 0 && `${plural(peers.waiting, "ended run")} wait to be written to the log.`}
      </NowLine>
    );
  return (
    <NowLine
      status={STATES[worst.state].status}
      lead={`${worst.name}: ${STATES[worst.state].word.toLowerCase()}.`}
      {...(worst.command !== undefined && { command: worst.command })}
    >
      <span class="any">{worst.text}</span>
    </NowLine>
  );
}

function PeerTable({ peers }: { readonly peers: readonly PeerBody[] }): JSX.Element | null {
  if (peers.length === 0) return null;
  return (
    <section class="card peers" aria-label="Peers">
      <header>
        <h2>Peers</h2>
      </header>
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Peers, table">
        <table class="tbl peer-tbl">
          <thead>
            <tr>
              <th>Peer</th>
              <th>State</th>
              <th class="num">Records</th>
              <th class="num">Behind</th>
              <th>Last exchange</th>
              <th>What happens</th>
            </tr>
          </thead>
          <tbody>
            {peers.map((peer) => (
              <tr key={peer.name}>
                <td class="any">
                  <b class="strong">{peer.name}</b>
                  <span class="sub">{peer.origin ?? peer.url}</span>
                </td>
                <td>
                  <Status status={STATES[peer.state].status} word={STATES[peer.state].word} />
                </td>
                <td class="num" data-l="Records">
                  {peer.records === undefined ? "—" : count(peer.records)}
                </td>
                <td class="num" data-l="Behind">
                  {peer.behind === undefined ? "—" : count(peer.behind)}
                </td>
                <td class="nowrap">
                  {peer.lastAt === undefined ? (
                    <span class="muted">never</span>
                  ) : (
                    `${tickingDuration(Math.max(0, now.value - Date.parse(peer.lastAt)))} ago`
                  )}
                </td>
                <td class="soft any">
                  {peer.text} {peer.command !== undefined && <Command text={peer.command} />}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function ConflictList({
  conflicts,
  all,
}: {
  readonly conflicts: readonly ConflictBody[];
  readonly all: boolean;
}): JSX.Element {
  return (
    <section class="card" aria-label="Conflicts">
      <header>
        <h2>Conflicts and forks</h2>
        <span class="muted">histories and contents that contradict each other, with evidence</span>
        <span class="grow" />
        <span class="seg" role="group" aria-label="Conflicts">
          <button type="button" aria-pressed={!all} onClick={() => setQuery({ all: undefined })}>
            Open
          </button>
          <button type="button" aria-pressed={all} onClick={() => setQuery({ all: true })}>
            All
          </button>
        </span>
      </header>
      {conflicts.length === 0 ? (
        <p class="pad muted">{all ? "There never was one." : "None is open."}</p>
      ) : (
        <ul class="conflicts">
          {conflicts.map((one) => (
            <li key={one.id}>
              <Status status={one.state === "open" ? "stopped" : "completed"} word={`${one.id} · ${one.kind}`} />
              <div class="any">
                <code>{one.subject}</code> {one.peer !== undefined && <span class="muted">with {one.peer}</span>}
                <span class="sub">
                  seen {shortTime(one.firstSeen, now.value)} · {one.state}
                  {one.resolution !== undefined && ` · ${one.resolution}`}
                </span>
                {one.evidence !== undefined && (
                  <details>
                    <summary>Evidence</summary>
                    <Json value={one.evidence} label={`evidence of conflict ${one.id}`} />
                  </details>
                )}
              </div>
              {one.command !== undefined && <Command text={one.command} />}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
