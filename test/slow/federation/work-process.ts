// A site of the test over three processes: the home of the runs, or a peer. It is told by messages what to be, and runs until it is
// killed.

import { one, openHome, openPeer } from "../../federation/work/work-site.ts";
import { programAt, type Frame } from "./work-program.ts";

export type Site =
  | { readonly site: "home"; readonly store: string; readonly peers: readonly string[]; readonly offerLeaseMs: number }
  | { readonly site: "peer"; readonly name: string; readonly url: string };

/** What the test tells a site. */
export type Order =
  | { readonly order: "start"; readonly id: string; readonly frames: readonly Frame[] }
  | { readonly order: "end"; readonly film: string; readonly n: number };

/** What a site tells the test. */
export type Report =
  | { readonly report: "ready"; readonly url?: string }
  | { readonly report: "rendering"; readonly peer: string; readonly execution: number; readonly frame: Frame }
  | { readonly report: "late"; readonly peer: string; readonly run: string; readonly execution: number };

function say(report: Report): void {
  process.send?.(report);
}

process.on("disconnect", () => process.exit(1));
process.once("message", (message) => {
  const site = message as Site;
  const opened = site.site === "home" ? beHome(site) : bePeer(site);
  opened.catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  });
});

async function beHome({ store, peers, offerLeaseMs }: Extract<Site, { site: "home" }>): Promise<void> {
  const { film, definitions } = programAt(() => {
    throw new Error("The home does not render.");
  });
  const home = await openHome({ store, definitions, work: { gpu: one(...peers) }, offerLeaseMs, leaseMs: 1_000 });
  home.kept.onLate = (peer, { run, execution }) => say({ report: "late", peer, run, execution });
  process.on("message", (message) => {
    const order = message as Order;
    if (order.order === "start") void home.engine.start(film, order.frames, { id: order.id });
  });
  say({ report: "ready", url: home.url });
}

async function bePeer({ name, url }: Extract<Site, { site: "peer" }>): Promise<void> {
  const gates = new Map<string, () => void>();
  const { definitions } = programAt(({ execution }, frame) => {
    say({ report: "rendering", peer: name, execution, frame });
    if (frame.held !== true) return undefined;
    return new Promise<void>((resolve) => gates.set(`${frame.film} ${frame.n}`, resolve));
  });
  process.on("message", (message) => {
    const order = message as Order;
    if (order.order === "end") gates.get(`${order.film} ${order.n}`)?.();
  });
  openPeer({ name, url, definitions });
  say({ report: "ready" });
}
