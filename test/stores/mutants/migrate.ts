import { answering, rewriting, without, type Mutant } from "./mutant.ts";

export const migrateMutants: readonly Mutant[] = [
  rewriting("a migration keeps the version", (write) => (write.write === "migrate" ? { ...write, version: 1 } : write)),
  rewriting("a migration checks neither head nor chain", async (write, store) => {
    if (write.write !== "migrate") return write;
    const record = (await store.listRuns({ limit: 100 })).find(({ run }) => run === write.run);
    return record === undefined ? write : { ...write, head: record.head, chain: record.chain };
  }),
  rewriting("a migration leaves the turn to its holder", async (write, store) => {
    if (write.write !== "migrate") return write;
    const [progress] = await store.readProgress([write.run]);
    return progress?.token === undefined ? write : { ...write, head: -1 };
  }),
  answering("a migrated run that is paused is resumed", async (outcome, write, store) => {
    if (write.write !== "migrate") return outcome;
    for (const { id, run } of await store.listRuns({ limit: 100, statuses: ["paused"] }))
      if (run === write.run) await store.write([{ write: "resume", id }]);
    return outcome;
  }),
  answering("a migration revokes the leases of tasks", async (outcome, write, store) => {
    if (write.write !== "migrate") return outcome;
    for (const { worker } of await store.listWorkers())
      for (const held of (await store.readHeld(worker)).items)
        if (held.run === write.run) await store.write([{ write: "return-item", ...held }]);
    return outcome;
  }),
  rewriting("a migration accepts every route", async (write) =>
    write.write === "migrate" && write.routes !== undefined
      ? { ...write, routes: [...write.routes, "import\n2", "import\n2\nmail"] }
      : write,
  ),
  rewriting("a migration accepts no route", (write) => (write.write === "migrate" ? without(write, "routes") : write)),
];
