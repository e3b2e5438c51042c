// DBOS: workflows run in this process; the system database is PostgreSQL.

import { DBOS } from "@dbos-inc/dbos-sdk";

const ended = new Map();

async function trivial(index) {
  return { index, text: "a small answer" };
}

const steps = DBOS.registerWorkflow(
  async (count) => {
    for (let index = 0; index < count; index += 1) await DBOS.runStep(() => trivial(index), { name: "step" });
    return count;
  },
  { name: "steps" },
);

const job = DBOS.registerWorkflow(
  async (index) => {
    ended.get(index)?.();
    return index;
  },
  { name: "job" },
);

export async function open({ url, connections, queueConcurrency }) {
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: url,
    systemDatabasePoolSize: connections,
    logLevel: "error",
    enableOTLP: false,
  });
  await DBOS.launch();
  // The default is to poll once per second, which is not what is measured.
  await DBOS.registerQueue("jobs", { workerConcurrency: queueConcurrency, minPollingIntervalMs: 10 });
  return {
    async run(count) {
      const handle = await DBOS.startWorkflow(steps)(count);
      return handle.getResult();
    },
    enqueue: async (indexes, onEnd) => {
      await Promise.all(
        indexes.map(async (index) => {
          ended.set(index, onEnd);
          await DBOS.startWorkflow(job, { queueName: "jobs" })(index);
        }),
      );
    },
    close: () => DBOS.shutdown(),
  };
}
