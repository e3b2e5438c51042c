// Palette: one field for everything: pages, commands, definitions, and runs by a part of their id. Arrows choose, Enter opens.

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DefinitionBody } from "../../../src/contract/definition.ts";
import type { RunSummary } from "../../../src/contract/run.ts";
import { get, post, Problem } from "../api.ts";
import { Icon, KindIcon, type IconName } from "../components/icon.tsx";
import { Status } from "../components/status.tsx";
import { keyHelpOpen } from "../keys.ts";
import { retryNow } from "../live.ts";
import { PAGES } from "../pages/registry.ts";
import type { PaletteProps } from "../palette-slot.tsx";
import { go, href, runPath } from "../router.ts";
import { can, site } from "../site.ts";
import "./palette.css";

interface Choice {
  readonly id: string;
  readonly group: string;
  readonly label: string;
  readonly detail?: string;
  readonly icon: IconName | "run";
  readonly status?: string;
  readonly run: () => void;
}

const WAIT_MS = 120;
const MAX_RUNS = 8;

/** Choices whose words all occur. */
function matching(choices: readonly Choice[], text: string): readonly Choice[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return choices.filter(({ label, detail = "" }) => {
    const searched = `${label} ${detail}`.toLowerCase();
    return words.every((word) => searched.includes(word));
  });
}

async function signOut(): Promise<void> {
  await post("/v1/session", {}, { method: "DELETE" });
  location.assign(href("/login"));
}

function fixedChoices(definitions: readonly DefinitionBody[]): readonly Choice[] {
  const pages = PAGES.filter(
    ({ nav, federated }) => nav !== undefined && (federated !== true || site.peek()?.federated === true),
  );
  const commands: readonly Omit<Choice, "id" | "group">[] = [
    { label: "Runs that failed", icon: "list", run: () => go(href("/", { status: "failed" })) },
    { label: "Runs that wait", icon: "list", run: () => go(href("/", { status: "waiting" })) },
    {
      label: "Approvals: history",
      detail: "who answered, and why",
      icon: "check",
      run: () => go(href("/approvals", { tab: "history" })),
    },
    { label: "All keys", icon: "term", run: () => (keyHelpOpen.value = true) },
    { label: "Read everything again", detail: "reconnect", icon: "retry", run: retryNow },
    { label: "Sign out", detail: "end the session of this browser", icon: "person", run: () => void signOut() },
  ];
  return [
    ...pages.map((page) => ({
      id: `page ${page.path}`,
      group: "Pages",
      label: page.nav!.label,
      icon: page.nav!.icon,
      run: () => go(href(page.path)),
    })),
    ...commands.map((one) => ({ ...one, id: `command ${one.label}`, group: "Commands" })),
    ...definitions.map(({ name, kind }) => ({
      id: `definition ${name}`,
      group: "Definitions",
      label: `Runs of ${name}`,
      detail: kind,
      icon: "list" as const,
      run: () => go(href("/", { definition: name })),
    })),
    ...(can("reader")
      ? definitions
          .filter(({ registered }) => registered)
          .map(({ name }) => ({
            id: `verify ${name}`,
            group: "Commands",
            label: `Verify live runs of ${name}`,
            icon: "shield" as const,
            run: () => go(href("/proof", { definition: name })),
          }))
      : []),
  ];
}

function runChoices(runs: readonly RunSummary[], text: string): readonly Choice[] {
  const found = runs.slice(0, MAX_RUNS).map((run): Choice => ({
    id: `run ${run.id}`,
    group: "Runs",
    label: run.id,
    detail: run.definition,
    icon: "run",
    status: run.status,
    run: () => go(href(runPath(run.id))),
  }));
  const exact = runs.some(({ id }) => id === text);
  if (text === "" || exact || /\s/.test(text)) return found;
  return [
    ...found,
    {
      id: "open",
      group: "Runs",
      label: `Open run ${text}`,
      detail: "by its id",
      icon: "right",
      run: () => go(href(runPath(text))),
    },
  ];
}

export default function Palette({ onClose }: PaletteProps): JSX.Element {
  const [text, setText] = useState("");
  const [runs, setRuns] = useState<readonly RunSummary[]>([]);
  const [definitions, setDefinitions] = useState<readonly DefinitionBody[]>([]);
  const [at, setAt] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    const own = dialog.current!;
    own.showModal();
    input.current?.focus();
    get<{ items: readonly DefinitionBody[] }>("/v1/definitions", { query: { limit: 100 } }).then(
      ({ items }) => setDefinitions(items),
      () => {},
    );
    return () => {
      own.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const query = text.trim();
  useEffect(() => {
    const aborter = new AbortController();
    const timer = setTimeout(() => {
      get<{ items: readonly RunSummary[] }>("/v1/runs", {
        query: { limit: MAX_RUNS, ...(query !== "" && { q: query }) },
        signal: aborter.signal,
      }).then(
        ({ items }) => setRuns(items),
        (thrown: unknown) => {
          if (thrown instanceof Problem) setRuns([]);
        },
      );
    }, WAIT_MS);
    return () => {
      clearTimeout(timer);
      aborter.abort();
    };
  }, [query]);
  const fixed = useMemo(() => fixedChoices(definitions), [definitions]);
  const choices = [
    ...matching(fixed, query)
      .filter(({ group }) => query !== "" || group !== "Definitions")
      .slice(0, query === "" ? 14 : 10),
    ...runChoices(runs, query),
  ];
  const chosen = choices[Math.min(at, choices.length - 1)];
  const open = (choice: Choice | undefined): void => {
    if (choice === undefined) return;
    onClose();
    choice.run();
  };
  const move = (by: number): void => {
    const next = (Math.min(at, choices.length - 1) + by + choices.length) % Math.max(1, choices.length);
    setAt(next);
    document.getElementById(`choice-${next}`)?.scrollIntoView({ block: "nearest" });
  };
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Search and commands"
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="palette-field">
        <Icon name="search" />
        <input
          ref={input}
          role="combobox"
          aria-expanded="true"
          aria-controls="choices"
          aria-activedescendant={chosen === undefined ? undefined : `choice-${choices.indexOf(chosen)}`}
          aria-label="Run, page or command"
          placeholder="Run, page or command"
          spellcheck={false}
          autocomplete="off"
          value={text}
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "ArrowDown" || event.key === "ArrowUp") {
              event.preventDefault();
              move(event.key === "ArrowDown" ? 1 : -1);
            } else if (event.key === "Enter") {
              event.preventDefault();
              open(chosen);
            }
          }}
        />
        <kbd>Esc</kbd>
      </div>
      <ul id="choices" role="listbox" aria-label="Choices">
        {choices.length === 0 && (
          <li class="palette-none muted" role="option" aria-selected="false" aria-disabled="true">
            Nothing matches.
          </li>
        )}
        {choices.map((choice, index) => (
          <li
            key={choice.id}
            id={`choice-${index}`}
            role="option"
            aria-selected={choice === chosen}
            onClick={() => open(choice)}
            onPointerMove={() => setAt(index)}
          >
            {choice.icon === "run" ? <KindIcon kind="workflow" /> : <Icon name={choice.icon} />}
            <span class={choice.group === "Runs" ? "mono cut" : "cut"}>{choice.label}</span>
            {choice.detail !== undefined && <span class="muted cut">{choice.detail}</span>}
            <span class="grow" />
            {choice.status !== undefined ? (
              <Status status={choice.status} />
            ) : (
              <span class="muted">{choice.group}</span>
            )}
          </li>
        ))}
      </ul>
    </dialog>
  );
}
