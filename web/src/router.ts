// Router: the address holds all state of a page: its path and its query. Back, reload and a copied address restore it.
//
// router.R1. Nothing that a person chose on a page lives only in memory: it is a parameter of the address.

import { computed, signal } from "@preact/signals";

/** The path under which the server is mounted, with a slash at both ends. */
export const basePath = new URL(
  document.querySelector<HTMLMetaElement>("meta[name=reprise-base]")?.content ?? "/",
  location.href,
).pathname;

interface Address {
  /** Without the base path: `/runs/ord-1`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

function read(): Address {
  const path = location.pathname.startsWith(basePath) ? location.pathname.slice(basePath.length - 1) : "/";
  return { path, query: new URLSearchParams(location.search) };
}

export const address = signal<Address>(read());
export const path = computed(() => address.value.path);

/** One parameter of the query, as a text; "" where it is absent. */
export function param(name: string): string {
  return address.value.query.get(name) ?? "";
}

export function params(name: string): readonly string[] {
  return address.value.query.getAll(name);
}

export type QueryChange = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** An address of the dashboard for `href`. */
export function href(to: string, query: QueryChange = {}): string {
  const text = applied(new URLSearchParams(), query).toString();
  return basePath + to.replace(/^\//, "") + (text === "" ? "" : `?${text}`);
}

/** The path of a run's page. Ids may hold any character. */
export function runPath(id: string): string {
  return `/runs/${encodeURIComponent(id)}`;
}

/** The address of this page with other parameters. */
export function hrefWith(change: QueryChange): string {
  const text = applied(new URLSearchParams(address.value.query), change).toString();
  return basePath + address.value.path.slice(1) + (text === "" ? "" : `?${text}`);
}

export function go(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  const before = address.peek().path;
  address.value = read();
  if (before !== address.peek().path) scrollTo(0, 0);
}

/** Changes parameters of this page. `undefined`, "" and false remove one. Replaces the address unless `push`: moving is no step of its own. */
export function setQuery(change: QueryChange, { push = false }: { readonly push?: boolean } = {}): void {
  const to = hrefWith(change);
  if (to !== location.pathname + location.search) go(to, { replace: !push });
}

function applied(query: URLSearchParams, change: QueryChange): URLSearchParams {
  for (const [name, value] of Object.entries(change)) {
    query.delete(name);
    if (value === undefined || value === "" || value === false) continue;
    for (const one of Array.isArray(value) ? value : [value]) query.append(name, one === true ? "1" : String(one));
  }
  return query;
}

/** Follows links inside the dashboard without loading the page anew. */
export function startRouter(): void {
  addEventListener("popstate", () => {
    address.value = read();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element | null)?.closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || link.target !== "" || link.hasAttribute("download")) return;
    const to = new URL(link.href);
    if (to.origin !== location.origin || !to.pathname.startsWith(basePath)) return;
    // Pages of the server that are no part of the dashboard: API, approval links, signing in, documents.
    if (/^(?:v1|a|login|openapi\.json|metrics|health|ready)(?:\/|$)/.test(to.pathname.slice(basePath.length))) return;
    if (to.hash !== "" && to.pathname === location.pathname) return;
    event.preventDefault();
    go(to.pathname + to.search);
  });
}
