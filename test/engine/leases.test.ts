// Several workers on one store: takeover, zombies and drain.

import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { expect, test } from "vitest";
import { createClient, createEngine, flow, promise, queue, task, typed, workflow, type RepriseEvent } from "reprise";
import { createTestEngine } from "reprise/testing";
import {
  collect,
  createFolder,
  createFreezer,
  createGate,
  rejection,
  storeAround,
  watchEvents,
  type AnyWrite,
} from "./world.ts";

/** Shared by two workers; each result names the worker that computed it. */
function createSubject(kind: "task" | "operation") {
  const gate = createGate<string>();
  const make = (call: () => Promise<string> | string) => {
    const work = task("work", call);
    const subject = workflow("subject", async (ctx) => {
      const first = await ctx.run("first", () => "first");
      const second = kind === "task" ? await ctx.task(work) : await ctx.run("work", call);
      return `${first} ${second}`;
    });
    return { subject, definitions: [subject, work] as const };
  };
  return { gate, slow: make(() => gate.wait()), quick: make(() => "from the second worker") };
}

test.each(["task", "operation"] as const)(
  "a worker takes over from one whose lease expired; the zombie's late result of a %s changes nothing",
  async (kind) => {
    using folder = createFolder();
    const store = `sqlite:${folder.file("shared.db")}`;
    const { gate, slow, quick } = createSubject(kind);
    await using zombie = await createTestEngine({
      definitions: slow.definitions,
      store,
      now: new Date("2030-01-01T00:00:00Z"),
    });
    const run = await zombie.start(slow.subject, undefined, { id: "run-1" });
    const seenByZombie = run.result();
    await gate.reached;
    using watched = watchEvents();
    await using engine = await createTestEngine({
      definitions: quick.definitions,
      store,
      now: new Date("2030-01-01T01:00:00Z"),
    });
    expect(watched.events).toContainEqual(expect.objectContaining({ event: "lease.taken_over", workers: 1 }));
    const same = engine.get(quick.subject, "run-1");
    expect(await same.result()).toBe("first from the second worker");
    const before = await same.info();
    gate.open("from the zombie");
    expect(await seenByZombie).toBe("first from the second worker");
    await zombie.clock.advance(0);
    expect(await same.info()).toEqual(before);
    expect(await same.verify()).toMatchObject({ status: "same" });
    const completed = (await collect(same.journal())).filter(({ type }) => type.endsWith("Completed"));
    expect(completed).toHaveLength(3);
  },
);

test("a frozen worker loses its run to another worker, and claims work again when it thaws", async () => {
  using folder = createFolder();
  const path = folder.file("shared.db");
  const freezer = createFreezer(path);
  const { gate, slow, quick } = createSubject("operation");
  const settings = { worker: { lease: 300 }, logger: { info: () => {}, warn: () => {}, error: () => {} } } as const;
  await using frozen = await createEngine({ ...settings, definitions: slow.definitions, store: freezer });
  const run = await frozen.start(slow.subject, undefined, { id: "run-1" });
  const result = run.result();
  await gate.reached;
  freezer.freeze();
  const other = await createEngine({ ...settings, definitions: quick.definitions, store: `sqlite:${path}` });
  expect(await other.get(quick.subject, "run-1").result()).toBe("first from the second worker");
  // Or it may claim the second run itself.
  await other.close();
  gate.open("from the zombie");
  freezer.thaw();
  expect(await result).toBe("first from the second worker");
  const again = await frozen.start(slow.subject, undefined, { id: "run-2" });
  expect(await again.result()).toBe("first from the zombie");
});

test("two workers share two hundred runs, and each run completes once", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const executions = new Map<number, number>();
  const work = task("work", (_ctx, n: number) => {
    executions.set(n, (executions.get(n) ?? 0) + 1);
    return n;
  });
  const one = workflow("one", async (ctx, n: number) => ctx.task(work, n));
  const definitions = [one, work] as const;
  await using first = await createEngine({ store, definitions, worker: { concurrency: 16 } });
  await using second = await createEngine({ store, definitions, worker: { concurrency: 16 } });
  const runs = await Promise.all(
    Array.from({ length: 200 }, (_, n) => (n % 2 === 0 ? first : second).start(one, n, { id: `run-${n}` })),
  );
  expect(await Promise.all(runs.map((run) => run.result()))).toEqual(Array.from({ length: 200 }, (_, n) => n));
  expect([...executions.values()].every((count) => count === 1)).toBe(true);
});

test("a draining worker lets running functions finish, starts nothing new and releases the rest", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const gate = createGate<string>();
  let executions = 0;
  const slow = task("slow", () => {
    executions += 1;
    return gate.wait();
  });
  const next = task("next", () => {
    executions += 1;
    return "next";
  });
  const two = workflow("two", async (ctx) => [await ctx.task(slow), await ctx.task(next)]);
  const definitions = [two, slow, next] as const;
  {
    await using engine = await createTestEngine({ definitions, store });
    const run = await engine.start(two, undefined, { id: "run-1" });
    await gate.reached;
    const drained = engine.drain();
    gate.open("slow");
    await drained;
    expect(executions).toBe(1);
    expect((await rejection(engine.start(two))).code).toBe("ENGINE_CLOSED");
    const types = (await collect(run.journal())).map(({ type }) => type);
    expect(types).toEqual(["RunStarted", "TaskScheduled", "TaskCompleted"]);
  }
  await using engine = await createTestEngine({ definitions, store });
  expect(await engine.get(two, "run-1").result()).toEqual(["slow", "next"]);
  expect(executions).toBe(2);
});

test("a draining worker releases an idle run at once, while a function of another run still runs", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const [long, short] = [createGate<string>(), createGate<string>()];
  const at = (where: string) => ({
    long: workflow("long", async (ctx) => ctx.run("work", () => long.wait())),
    short: workflow("short", async (ctx) => [
      await ctx.run("work", () => short.wait()),
      await ctx.run("where", () => where),
    ]),
  });
  const [first, second] = [at("first"), at("second")];
  await using leaving = await createEngine({ store, definitions: [first.long, first.short] });
  const waited = (await leaving.start(first.long)).result();
  const run = await leaving.start(first.short, undefined, { id: "short-1" });
  await Promise.all([long.reached, short.reached]);
  const drained = leaving.drain({ grace: "10 minutes" });
  await using staying = await createEngine({ store, definitions: [second.long, second.short] });
  short.open("worked");
  expect(await staying.get(second.short, "short-1").result()).toEqual(["worked", "second"]);
  expect(await run.verify()).toMatchObject({ status: "same" });
  long.open("worked too");
  await drained;
  expect(await waited).toBe("worked too");
});

test.each(["task", "run"] as const)(
  "a draining worker does not start a %s that it claimed as the drain started, and releases it at once",
  async (kind) => {
    using folder = createFolder();
    const path = folder.file("shared.db");
    const started: string[] = [];
    const long = createGate();
    const at = (where: string) => {
      // In a queue, because the run would claim a task without a queue eagerly.
      const work = task("work", { queue: queue("line") }, () => void started.push(where));
      return {
        work,
        busy: workflow("busy", async (ctx) => ctx.run("work", () => long.wait())),
        one: workflow("one", async (ctx) =>
          kind === "task" ? ctx.task(work) : ctx.run("work", () => void started.push(where)),
        ),
      };
    };
    const [first, second] = [at("first"), at("second")];
    const asked = kind === "task" ? "claim-items" : "claim-turns";
    const [hold, claimed] = [createGate(), createGate()];
    let isHeld = false;
    const slow = storeAround(async (writes, apply) => {
      const outcomes = await apply();
      const claim = outcomes[writes.findIndex(({ write }) => write === asked)];
      const taken = kind === "task" ? (claim as { items: readonly unknown[] } | undefined)?.items : claim;
      if (!isHeld || ((taken ?? []) as readonly unknown[]).length === 0) return outcomes;
      claimed.open();
      await hold.opened;
      return outcomes;
    }, path);
    await using leaving = await createEngine({ store: slow, definitions: [first.busy, first.one, first.work] });
    const busy = (await leaving.start(first.busy)).result();
    await long.reached;
    isHeld = true;
    // Started by another program, so that the worker has to claim it.
    await using client = await createClient({
      store: `sqlite:${path}`,
      definitions: [first.one, first.work],
    });
    await client.start(first.one, undefined, { id: "one-1" });
    await claimed.opened;
    const drained = leaving.drain({ grace: "10 minutes" });
    isHeld = false;
    hold.open();
    await using staying = await createEngine({
      store: `sqlite:${path}`,
      definitions: [second.busy, second.one, second.work],
    });
    await staying.get(second.one, "one-1").result();
    expect(started).toEqual(["second"]);
    long.open();
    await drained;
    await busy;
  },
);

test.each(["task", "child", "node"] as const)(
  "a draining worker does not start a %s that its last commit claimed eagerly, and releases it at once",
  async (kind) => {
    using folder = createFolder();
    const path = folder.file("shared.db");
    const started: string[] = [];
    const long = createGate();
    let first = createGate<string>();
    const at = (where: string) => {
      const second = task("second", () => void started.push(where));
      const child = workflow("second", async (ctx) => ctx.run("work", () => void started.push(where)));
      const busy = workflow("busy", async (ctx) => ctx.run("work", () => long.wait()));
      const flowing = flow("one", { input: typed<void>() })
        .action("first", ["input"], () => first.wait())
        .action("second", ["first"], () => void started.push(where))
        .output(["second"], () => null);
      const coded = workflow("one", async (ctx) => {
        await ctx.run("first", () => first.wait());
        return kind === "task" ? ctx.task(second) : ctx.child(child);
      });
      return { definitions: [second, child, busy, kind === "node" ? flowing : coded] as const, busy };
    };
    const [old, young] = [at("old"), at("young")];
    const has = (writes: readonly AnyWrite[], text: string): boolean =>
      writes.some((write) => /^(turn|complete)$/.test(write.write) && JSON.stringify(write).includes(text));
    let made: ((isClaimed: boolean) => void) | undefined;
    const hold = createGate();
    const slow = storeAround(async (writes, apply) => {
      if (made !== undefined && has(writes, '"second"')) {
        const isClaimed = has(writes, '"claim":');
        made(isClaimed);
        made = undefined;
        if (isClaimed) await hold.opened;
      }
      return apply();
    }, path);
    await using leaving = await createEngine({ store: slow, definitions: old.definitions });
    const busy = (await leaving.start(old.busy)).result();
    await long.reached;
    let id = "";
    for (let n = 1, isClaimed = false; !isClaimed; n += 1) {
      first = createGate();
      id = `one-${n}`;
      const run = await leaving.start("one" as never, undefined as never, { id } as never);
      await first.reached;
      const making = new Promise<boolean>((resolve) => (made = resolve));
      first.open("done");
      isClaimed = await making;
      // A worker that is about to poll claims nothing eagerly: then try again.
      if (!isClaimed) await run.result();
    }
    started.length = 0;
    const drained = leaving.drain({ grace: "10 minutes" });
    hold.open();
    await using staying = await createEngine({ store: `sqlite:${path}`, definitions: young.definitions });
    await staying.get("one" as never, id).result();
    expect(started).toEqual(["young"]);
    long.open();
    await drained;
    await busy;
  },
);

test("a client that waits for 600 runs sees every one end, whichever worker ran it", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const echo = workflow("echo", async (ctx, n: number) => ctx.run("echo", () => n));
  await using client = await createClient({ store, definitions: [echo] });
  const numbers = Array.from({ length: 600 }, (_, n) => n);
  const runs = await Promise.all(numbers.map((n) => client.start(echo, n)));
  const results = Promise.all(runs.map((run) => run.result()));
  await using _engine = await createEngine({ store, definitions: [echo] });
  expect(await results).toEqual(numbers);
});

test("a drained engine still resolves result() when another worker ends the run", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const waits = workflow("waits", { ports: { go: promise<string>() } }, async (ctx) => ctx.promise("go"));
  await using drained = await createEngine({ store, definitions: [waits] });
  const result = (await drained.start(waits, undefined, { id: "run-1" })).result();
  await drained.drain();
  await using engine = await createEngine({ store, definitions: [waits] });
  await engine.get(waits, "run-1").resolve("go", "from elsewhere");
  expect(await result).toBe("from elsewhere");
});

test("a draining worker releases a run that is being replayed", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const gate = createGate<string>();
  const works = workflow("works", async (ctx) => ctx.run("work", () => gate.wait()));
  {
    await using first = await createEngine({ store, definitions: [works] });
    await first.start(works, undefined, { id: "run-1" });
    await gate.reached;
    const drained = first.drain();
    gate.open("worked");
    await drained;
  }
  {
    await using second = await createEngine({ store, definitions: [works] });
    await new Promise<void>((resolve, reject) => {
      const onEvent = (event: unknown): void => {
        if ((event as RepriseEvent).event !== "run.resumed") return;
        unsubscribe("reprise", onEvent);
        // Its code has ended, and the worker has not collected the result yet.
        second.drain().then(resolve, reject);
      };
      subscribe("reprise", onEvent);
    });
    expect((await second.find("run-1"))?.status).toBe("queued");
  }
  await using third = await createEngine({ store, definitions: [works] });
  expect(await third.get(works, "run-1").result({ timeout: "10 s" })).toBe("worked");
});

test("after the grace period a drain abandons the running function, and another worker repeats it at once", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const { gate, slow, quick } = createSubject("operation");
  {
    const warnings: string[] = [];
    const logger = { info: () => {}, warn: (message: string) => void warnings.push(message), error: () => {} };
    await using engine = await createTestEngine({ definitions: slow.definitions, store, logger });
    await engine.start(slow.subject, undefined, { id: "run-1" });
    await gate.reached;
    await engine.drain({ grace: "5s" });
    expect(warnings).toHaveLength(1);
  }
  await using engine = await createTestEngine({ definitions: quick.definitions, store });
  expect(await engine.get(quick.subject, "run-1").result()).toBe("first from the second worker");
  gate.open("too late");
});

test("a run whose function keeps killing its worker is blocked with evidence, and can be resumed", async () => {
  let deaths = 0;
  let deadly = true;
  let alive = createGate();
  const poison = workflow("poison", async (ctx) =>
    ctx.run("poison", () => {
      if (!deadly) return "survived";
      deaths += 1;
      alive.open();
      return new Promise<string>(() => {});
    }),
  );
  await using engine = await createTestEngine({ definitions: [poison] });
  const run = await engine.start(poison);
  while ((await run.info()).status !== "blocked") {
    await alive.opened;
    alive = createGate();
    await engine.crash();
  }
  expect(deaths).toBe(8);
  const error = await rejection(run.result());
  expect(error.code).toBe("RUN_BLOCKED");
  expect(error.message).toContain("workers in a row lost their lease");
  deadly = false;
  await run.resume();
  expect(await run.result()).toBe("survived");
});

test("messages from another process reach a held run", async () => {
  using folder = createFolder();
  const store = `sqlite:${folder.file("shared.db")}`;
  const gate = createGate();
  const both = workflow("both", { ports: { go: promise<string>() } }, async (ctx) => {
    const held = ctx.run("hold", () => gate.wait());
    const got = await ctx.promise("go");
    gate.open();
    await held;
    return got;
  });
  await using worker = await createEngine({ store, definitions: [both] });
  await using client = await createClient({ store, definitions: [both] });
  const run = await worker.start(both, undefined, { id: "run-1" });
  await gate.reached;
  await client.get(both, "run-1").resolve("go", "from outside");
  expect(await run.result()).toBe("from outside");
  expect(await client.get(both, "run-1").result()).toBe("from outside");
});
