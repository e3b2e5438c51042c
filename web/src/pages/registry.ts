// Registry: the pages of the dashboard. A page is a module of its own, loaded when it is first shown.

import type { ComponentType } from "preact";
import type { IconName } from "../components/icon.tsx";
import type { Role } from "../../../src/contract/site.ts";

/** What every page gets: the decoded names of its path. The rest of its state is in the address (router.R1). */
export interface PageProps {
  readonly params: Readonly<Record<string, string>>;
}

export interface PageModule {
  readonly default: ComponentType<PageProps>;
}

export interface Page {
  /** `/runs/{id}`: a name in braces is one segment, decoded. */
  readonly path: string;
  readonly load: () => Promise<PageModule>;
  /** In the header. `key`: the second key after G. */
  readonly nav?: { readonly label: string; readonly icon: IconName; readonly key: string; readonly wide?: true };
  /** The entry of the header that is marked on this page. */
  readonly under?: string;
  readonly role?: Role;
  /** Only of a site that has federation. */
  readonly federated?: true;
}

export const PAGES: readonly Page[] = [
  {
    path: "/",
    load: () => import("./runs/page.tsx"),
    nav: { label: "Runs", icon: "list", key: "r" },
  },
  { path: "/runs/{id}", load: () => import("./run/page.tsx"), under: "/" },
  {
    path: "/approvals",
    load: () => import("./approvals/page.tsx"),
    nav: { label: "Approvals", icon: "check", key: "a" },
  },
  { path: "/queues", load: () => import("./queues/page.tsx"), nav: { label: "Queues", icon: "layers", key: "q" } },
  {
    path: "/schedules",
    load: () => import("./schedules/page.tsx"),
    nav: { label: "Schedules", icon: "clock", key: "s" },
  },
  {
    path: "/evals",
    load: () => import("./evals/page.tsx"),
    nav: { label: "Evals", icon: "fork", key: "e", wide: true },
    role: "reader",
  },
  { path: "/evals/{id}", load: () => import("./evals/page.tsx"), under: "/evals", role: "reader" },
  { path: "/proof", load: () => import("./proof/page.tsx"), nav: { label: "Proof", icon: "shield", key: "p" } },
  {
    path: "/peers",
    load: () => import("./peers/page.tsx"),
    nav: { label: "Peers", icon: "peers", key: "f", wide: true },
    federated: true,
  },
];

export interface FoundPage {
  readonly page: Page;
  readonly params: Readonly<Record<string, string>>;
}

export function findPage(path: string): FoundPage | undefined {
  const parts = path.replace(/\/$/, "").split("/");
  for (const page of PAGES) {
    const wanted = page.path.replace(/\/$/, "").split("/");
    if (wanted.length !== parts.length) continue;
    const params: Record<string, string> = {};
    const matches = wanted.every((part, index) => {
      const name = /^\{(.+)\}$/.exec(part)?.[1];
      if (name === undefined) return part === parts[index];
      try {
        params[name] = decodeURIComponent(parts[index]!);
      } catch {
        return false;
      }
      return params[name] !== "";
    });
    if (matches) return { page, params };
  }
  return undefined;
}
