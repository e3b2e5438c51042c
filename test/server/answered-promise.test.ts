// A promise that was answered is not open, at whatever moment the run takes its answer.

import { createEngine, promise, signal, workflow, type StoreSource } from "reprise";
import { sqlite } from "reprise/sqlite";
import { expect, test } from "vitest";
import { createGate, until, type AnyStore, type AnyWrite, type Gate } from "../engine/world.ts";
import { openApi } from "./api.ts";

const waits = workflow("waits", { ports: { title: promise<string>(), go: signal<void>() } }, async (ctx) => {
  const title = await ctx.promise("title");
  await ctx.receive("go");
  return title;
});

/** A store whose claims wait at `claims`, and which calls `beforeRead` before every read. */
function gatedStore(): StoreSource & { claims: Gate | undefined; beforeRead: () => Promise<void> } {
  const gated = {
    claims: undefined as Gate | undefined,
    beforeRead: () => Promise.resolve(),
    async "~open"(options: Parameters<StoreSource["~open"]>[0]) {
      return new Proxy<AnyStore>(await sqlite(":memory:")["~open"](options), {
        get(target, key) {
          const value: unknown = Reflect.get(target, key);
          if (typeof value !== "function") return value;
          if (key === "write")
            return async (writes: readonly AnyWrite[]) => {
              if (writes.some(({ write }) => write === "claim-turns")) await gated.claims?.wait();
              return target.write(writes);
            };
          if (typeof key !== "string" || !key.startsWith("read")) return value.bind(target) as unknown;
          return async (...args: unknown[]) => {
            await gated.beforeRead();
            return value.apply(target, args) as unknown;
          };
        },
      });
    },
  };
  return gated;
}

test("a promise whose answer was accepted is not open in the detail of its run, whichever read the run takes it before", async () => {
  const store = gatedStore();
  await using engine = await createEngine({ store, definitions: [waits], logger: false });
  await using api = openApi(engine);
  const openPromises = (): Promise<number> => Array.fromAsync(engine.promises()).then(({ length }) => length);
  let reads = 1;
  for (let at = 0; at < reads; at++) {
    const run = await engine.start(waits, undefined, { id: `run-${at}` });
    await until(async () => (await openPromises()) === 1);
    const claims = (store.claims = createGate());
    await run.resolve("title", "Autumn");
    let read = 0;
    store.beforeRead = async () => {
      if (read++ !== at) return;
      store.beforeRead = () => Promise.resolve();
      claims.open();
      await until(async () => (await openPromises()) === 0);
      store.beforeRead = () => Promise.resolve(void read++);
    };
    const { body } = await api.get(`/v1/runs/${run.id}`);
    expect(body.openPromises, `the run took its answer before read ${at}`).toEqual([]);
    reads = Math.max(reads, read);
    store.beforeRead = () => Promise.resolve();
    claims.open();
    store.claims = undefined;
    await run.signal("go");
    expect(await run.result()).toBe("Autumn");
  }
  expect(reads).toBeGreaterThanOrEqual(4);
});
