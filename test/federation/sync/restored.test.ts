// T-10: a store that was restored from a backup never signs another log of the same size.

import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Carrier } from "../../../src/carriers/carrier.ts";
import { systemClock, systemTimers } from "../../../src/base/index.ts";
import { parseCheckpoint } from "../../../src/federation/log/checkpoint.ts";
import { Sequencer } from "../../../src/federation/sync/sequencer.ts";
import { double, folderCarrier, freshFolder, Site } from "./site.ts";

const RULES = [{ to: ["*"], payloads: "full" as const }];

/** Every checkpoint that anybody has ever written. */
class Witness {
  readonly #roots = new Map<string, Set<string>>();

  watch(carrier: Carrier): Carrier {
    return {
      ...carrier,
      url: carrier.url,
      get: (path, options) => carrier.get(path, options),
      list: (prefix, options) => carrier.list!(prefix, options),
      remove: (path) => carrier.remove!(path),
      close: async () => {},
      put: (path, bytes, options) => {
        if (path.endsWith("/checkpoint")) this.note(Buffer.from(bytes).toString());
        return carrier.put!(path, bytes, options);
      },
    };
  }

  note(note: string): void {
    const { origin, size, root } = parseCheckpoint(note);
    const roots = this.#roots.get(`${origin} ${size}`) ?? new Set();
    this.#roots.set(`${origin} ${size}`, roots.add(root));
  }

  /** Of a home too. */
  addHome({ home }: Site): void {
    for (const { id, size } of home.origins())
      for (let n = 1; n <= size; n += 1) {
        const checkpoint = home.firstCheckpointCovering(id, n);
        if (checkpoint !== undefined) this.note(checkpoint.note);
      }
  }

  /** Sizes with two roots. */
  get contradictions(): readonly string[] {
    return [...this.#roots].filter(([, roots]) => roots.size > 1).map(([place]) => place);
  }
}

/** The folders of a site, as a backup has them. */
async function backUp(site: Site, what: "store" | "all"): Promise<string> {
  await site.close();
  const folder = freshFolder();
  for (const name of what === "all" ? ["store.db", "home"] : ["store.db"])
    cpSync(join(site.folder, name), join(folder, name), { recursive: true });
  return folder;
}

/** The site after its store, or everything, was restored. */
async function restore(site: Site, backup: string, what: "store" | "all"): Promise<Site> {
  await site.close();
  const folder = freshFolder();
  mkdirSync(folder, { recursive: true });
  cpSync(join(backup, "store.db"), join(folder, "store.db"));
  cpSync(join(what === "all" ? backup : site.folder, "home"), join(folder, "home"), { recursive: true });
  return new Site(site.name, { rules: RULES }, folder);
}

for (const what of ["store", "all"] as const) {
  const name = what === "store" ? "a store" : "a store with its home";

  test(`${name} that was restored and syncs first takes its records back`, async () => {
    const witness = new Witness();
    const carrier = witness.watch(await folderCarrier());
    const first = new Site("edge", { rules: RULES });
    await first.run(double, { "d-1": 1 });
    await first.sync(carrier, "hub");
    const backup = await backUp(first, what);
    const second = new Site("edge", { rules: RULES }, first.folder);
    await second.run(double, { "d-2": 2, "d-3": 3 });
    await second.sync(carrier, "hub");
    const hash = second.home.stateHash();

    const restored = await restore(second, backup, what);
    expect(await restored.meet(carrier)).toEqual({ status: "healed", records: 4 });
    expect(await restored.sync(carrier, "hub")).toMatchObject([{ status: "unchanged" }]);
    expect(restored.home.stateHash()).toBe(hash);
    await restored.run(double, { "d-4": 4 });
    expect(await restored.sync(carrier, "hub")).toMatchObject([{ status: "pushed", records: 2 }]);
    expect(restored.home.origins().map(({ id, size }) => [id, size])).toEqual([[restored.origin, 8]]);

    const hub = new Site("hub").admit(restored);
    await hub.pull(carrier, { journals: "all" });
    expect(hub.home.findRuns().map(({ run }) => run)).toEqual(["d-1", "d-2", "d-3", "d-4"]);
    witness.addHome(restored);
    expect(witness.contradictions).toEqual([]);
  });

  test(`${name} that was restored and writes first continues in another epoch`, async () => {
    const witness = new Witness();
    const carrier = witness.watch(await folderCarrier());
    const first = new Site("edge", { rules: RULES });
    await first.run(double, { "d-1": 1 });
    await first.sync(carrier, "hub");
    const backup = await backUp(first, what);
    const second = new Site("edge", { rules: RULES }, first.folder);
    await second.run(double, { "d-2": 2, "d-3": 3 });
    await second.sync(carrier, "hub");
    const hub = new Site("hub").admit(second);
    await hub.pull(carrier, { journals: "all" });

    const restored = await restore(second, backup, what);
    await restored.run(double, { "d-9": 9 });
    const store = await restored.store();
    await new Sequencer({
      store,
      key: restored.key,
      timers: systemTimers,
      clock: systemClock,
      keeps: () => true,
    }).run();

    expect(await restored.meet(carrier)).toEqual({
      status: "opened",
      origin: `${restored.origin}/2`,
      closed: restored.origin,
      at: 2,
    });
    await restored.sync(carrier, "hub");
    await hub.pull(carrier, { journals: "all", fill: true });
    expect(hub.home.origins().map(({ id, size, status }) => [id, size, status])).toEqual([
      [restored.origin, 6, "active"],
      [`${restored.origin}/2`, 3, "active"],
    ]);
    expect(hub.home.findRuns().map(({ run }) => run)).toEqual(["d-1", "d-2", "d-3", "d-9"]);
    // It goes on under the new epoch, also after another restart.
    await restored.run(double, { "d-10": 10 });
    await restored.sync(carrier, "hub");
    await hub.pull(carrier, { journals: "all" });
    expect(hub.home.findRuns().map(({ run }) => run)).toEqual(["d-1", "d-2", "d-3", "d-9", "d-10"]);
    expect(hub.home.conflicts()).toEqual([]);
    witness.addHome(restored);
    witness.addHome(hub);
    expect(witness.contradictions).toEqual([]);
  });
}

test("a copy of a store without its key is another site, and appends nothing to the log", async () => {
  const edge = new Site("edge", { rules: RULES });
  await edge.run(double, { "d-1": 1 });
  await edge.take();
  const backup = await backUp(edge, "store");
  const other = new Site("copy", { rules: RULES }, backup);
  await other.run(double, { "d-2": 2 });
  await expect(other.take()).rejects.toMatchObject({ code: "NOT_ADMITTED" });
});
