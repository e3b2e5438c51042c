// openworkflow: a worker in this process, on PostgreSQL or SQLite.
//
// A handle's `result()` polls once per second, which is not what is measured: a run counts as ended when its function returns, shortly
// before openworkflow commits its end.

import { OpenWorkflow } from "openworkflow";

async function backendOf(url, connections) {
  if (url.startsWith("postgres")) {
    const { BackendPostgres } = await import("openworkflow/postgres");
    const { default: postgres } = await import("postgres");
    // For the migrations; then a pool of the agreed size, as newPostgres makes one.
    const migrated = await BackendPostgres.connect(url);
    await migrated.stop();
    const pool = postgres(url, {
      max: connections,
      onnotice: () => {},
      transform: { column: { from: postgres.toCamel } },
    });
    return BackendPostgres.fromPool(pool);
  }
  const { BackendSqlite } = await import("openworkflow/sqlite");
  return BackendSqlite.connect(url);
}

export async function open({ url, connections, concurrency }) {
  const backend = await backendOf(url, connections);
  const engine = new OpenWorkflow({ backend });
  const ended = new Map();
  const steps = engine.defineWorkflow({ name: "steps" }, async ({ input, step }) => {
    for (let index = 0; index < input.count; index += 1)
      await step.run({ name: `step ${index}` }, async () => ({ index, text: "a small answer" }));
    ended.get(input.key)(input.count);
    return input.count;
  });
  const worker = engine.newWorker({ concurrency });
  await worker.start();
  let last = 0;
  return {
    async run(count) {
      const key = (last += 1);
      const result = new Promise((resolve) => ended.set(key, resolve));
      await steps.run({ count, key });
      const value = await result;
      ended.delete(key);
      return value;
    },
    async close() {
      await worker.stop();
      await backend.stop();
    },
  };
}
