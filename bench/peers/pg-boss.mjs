// pg-boss: a queue on PostgreSQL. Jobs are inserted and fetched in batches, as its documentation recommends for throughput.

import { PgBoss } from "pg-boss";

const BATCH = 500;

export async function open({ url, connections, queueConcurrency }) {
  const boss = new PgBoss({ connectionString: url, max: connections, schedule: false });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue("jobs");
  const ended = new Map();
  await boss.work(
    "jobs",
    { batchSize: queueConcurrency, localConcurrency: 2, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
    async (jobs) => {
      for (const { data } of jobs) ended.get(data.index)?.();
    },
  );
  return {
    enqueue: async (indexes, onEnd) => {
      for (const index of indexes) ended.set(index, onEnd);
      for (let from = 0; from < indexes.length; from += BATCH)
        await boss.insert(
          "jobs",
          indexes.slice(from, from + BATCH).map((index) => ({ data: { index } })),
        );
    },
    close: () => boss.stop({ graceful: false }),
  };
}
