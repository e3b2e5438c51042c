// Shell: the header around every page, the page itself, messages and dialogs.

import { useComputed } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useRef } from "preact/hooks";
import { localNow, now } from "./clock.ts";
import { announcement, Button, Command, NowLine } from "./components/controls.tsx";
import { Questions } from "./components/dialog.tsx";
import { Brand, Icon } from "./components/icon.tsx";
import { KeyHelp } from "./components/key-help.tsx";
import { Toasts } from "./components/toast.tsx";
import { clockTime, duration } from "./format.ts";
import { keyCaps, keyHelpOpen, useKeys, type Key } from "./keys.ts";
import { isStale, live, retryNow } from "./live.ts";
import { findPage, PAGES, type Page, type PageProps } from "./pages/registry.ts";
import { openPalette, PaletteSlot } from "./palette-slot.tsx";
import { usePart } from "./part.tsx";
import { address, go, href } from "./router.ts";
import { refusal, role, site } from "./site.ts";

export function Shell(): JSX.Element {
  const found = useComputed(() => findPage(address.value.path)).value;
  const navPages = PAGES.filter(
    ({ nav, federated }) => nav !== undefined && (federated !== true || site.value?.federated === true),
  );
  useKeys("Everywhere", [
    ...navPages.map((page): Key => ({
      keys: `g ${page.nav!.key}`,
      label: page.nav!.label,
      run: () => go(href(page.path)),
    })),
    { keys: "Mod+k", label: "Commands and search", run: openPalette },
    { keys: "/", label: "Search", run: openPalette },
    { keys: "?", label: "All keys", run: () => (keyHelpOpen.value = true) },
  ]);
  return (
    <>
      <a class="skip" href={`${location.pathname}${location.search}#main`} onClick={skipToMain}>
        Skip to content
      </a>
      <Header pages={navPages} current={found?.page.under ?? found?.page.path} />
      <main id="main" tabIndex={-1}>
        <StaleLine />
        <Notices />
        {refusal.value !== undefined ? (
          <Refused />
        ) : found === undefined ? (
          <NotFound />
        ) : (
          <div class={isStale.value ? "stale" : ""}>
            <LazyPage page={found.page} params={found.params} />
          </div>
        )}
      </main>
      <Toasts />
      <Questions />
      <KeyHelp />
      <PaletteSlot />
      <div class="vh" role="status">
        {announcement.value}
      </div>
    </>
  );
}

function skipToMain(event: MouseEvent): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Header({
  pages,
  current,
}: {
  readonly pages: readonly Page[];
  readonly current: string | undefined;
}): JSX.Element {
  const open = site.value?.openPromises ?? 0;
  return (
    <header class="top">
      <a class="brand" href={href("/")}>
        <Brand />
        Reprise
      </a>
      {site.value !== undefined && (
        <span class="store" title="Store">
          {site.value.name} · {site.value.store}
        </span>
      )}
      <nav class="nav" aria-label="Main">
        {pages.map((page) => (
          <a
            key={page.path}
            href={href(page.path)}
            aria-current={page.path === current ? "page" : undefined}
            class={page.nav!.wide === true ? "only-l" : undefined}
          >
            <Icon name={page.nav!.icon} />
            {page.nav!.label}
            {page.path === "/approvals" && open > 0 && (
              <span class="count todo">
                {open >= 1000 ? "999+" : open}
                <span class="vh"> open</span>
              </span>
            )}
          </a>
        ))}
      </nav>
      <span class="grow" />
      <button type="button" class="find" onClick={openPalette}>
        <Icon name="search" />
        <span class="vh">Search and commands: </span>
        <span class="grow cut">Run, step or command</span>
        <kbd>{keyCaps("Mod+k")[0]}</kbd>
      </button>
      <LiveMark />
      {site.value !== undefined && (
        <span class="tag" title={`Your role, as ${site.value.caller.name}`}>
          {role.value}
        </span>
      )}
    </header>
  );
}

function LiveMark(): JSX.Element {
  const { state, asOf } = live.value;
  if (refusal.value !== undefined) {
    return (
      <span class="live">
        <span class="dot off" />
        {refusal.value.status === 401 ? "Signed out" : "No access"}
      </span>
    );
  }
  if (state === "stale") {
    return (
      <span class="live">
        <span class="dot bad" />
        As of {clockTime(asOf)}
      </span>
    );
  }
  return (
    <span class="live">
      <span class={state === "live" ? "dot" : "dot off"} />
      <span class="only-l">{state === "live" ? "Live" : "Connecting"}</span>
      <span class="vh only-s">{state === "live" ? "Live" : "Connecting"}</span>
    </span>
  );
}

/** Says why the page is gray, since when, and what to do. */
function StaleLine(): JSX.Element | null {
  const { state, asOf, problem, retryAt } = live.value;
  if (state !== "stale" || problem === undefined || refusal.value !== undefined) return null;
  const isStore = problem.code.startsWith("STORE_");
  const left = Math.max(0, Math.ceil(((retryAt ?? 0) - localNow()) / 1000));
  return (
    <NowLine
      status="failed"
      lead={isStore ? "The store does not answer" : "The server does not answer"}
      alert
      command={isStore ? "reprise doctor" : "reprise serve"}
      actions={
        <Button icon="retry" onClick={retryNow}>
          Try now
        </Button>
      }
      aside={
        <span class="soft">
          {left > 0 ? `Next attempt in ${left} s. ` : "Trying now. "}Acknowledged work is durable. Actions are off until
          it answers.
        </span>
      }
    >
      · {problem.status === 0 ? "The connection is lost." : problem.detail}
      {problem.status !== 0 && problem.code !== "" && (
        <>
          {" "}
          (<code>{problem.code}</code>)
        </>
      )}{" "}
      The page below is from <b>{clockTime(asOf)}</b>
      <span aria-hidden="true">, {duration(Math.max(0, now.value - asOf))} ago</span>. Workers continue without it.
    </NowLine>
  );
}

function Notices(): JSX.Element | null {
  const notices = site.value?.notices ?? [];
  if (notices.length === 0 || isStale.value) return null;
  return (
    <>
      {notices.slice(0, 3).map((notice) => (
        <div key={notice.text} class={`notice ${notice.tone}`}>
          <Icon name="warn" />
          <span class="grow">{notice.text}</span>
          {notice.command !== undefined && <Command text={notice.command} />}
        </div>
      ))}
    </>
  );
}

function Refused(): JSX.Element {
  const problem = refusal.value!;
  return (
    <section class="card">
      <div class="state">
        <Brand size={44} />
        <h1>{problem.status === 401 ? "No access yet" : "No access"}</h1>
        <p>
          {problem.status === 401
            ? "Open the one-time address that reprise dev or reprise serve prints in its terminal, or sign in with a token."
            : problem.detail}
        </p>
        {problem.status === 401 && (
          <p>
            <a class="link" href={href("/login")}>
              Sign in
            </a>
          </p>
        )}
        {problem.hint !== undefined && <Command text={problem.hint} />}
      </div>
    </section>
  );
}

function NotFound(): JSX.Element {
  return (
    <section class="card">
      <div class="state">
        <h1>There is no such page</h1>
        <p>
          <code>{address.value.path}</code> is no address of the dashboard.
        </p>
        <a class="link" href={href("/")}>
          All runs
        </a>
      </div>
    </section>
  );
}

/** Shows the page; the old one stays until the new one is loaded. */
function LazyPage({ page, params }: { readonly page: Page } & PageProps): JSX.Element {
  const [Loaded, failure] = usePart(page);
  const last = useRef<{ readonly page: Page; readonly Shown: ComponentType<PageProps> } & PageProps>(undefined);
  if (Loaded !== undefined) last.current = { page, Shown: Loaded, params };
  else if (failure !== undefined) return failure;
  if (last.current === undefined) return <p class="muted">Loading …</p>;
  const shown = last.current;
  // A page keeps its state while only its query changes; another run is another page.
  return <shown.Shown key={shown.page.path + JSON.stringify(shown.params)} params={shown.params} />;
}
