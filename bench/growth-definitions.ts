// Definitions of `growth`: tasks in queues with a concurrency limit, and many large parallel results.

import { queue, task, workflow } from "reprise";

const four = queue("limited-4", { concurrency: 4 });
export const jobOfFour = task("job-4", { queue: four }, (_ctx, index: number) => index);
/** Runs of one task each, in a queue that lets four of them run at once. */
export const queuedFour = workflow("queued-4", (ctx, index: number) => ctx.task(jobOfFour, index));

const sixtyFour = queue("limited-64", { concurrency: 64 });
export const jobOfSixtyFour = task("job-64", { queue: sixtyFour }, (_ctx, index: number) => index);
export const queuedSixtyFour = workflow("queued-64", (ctx, index: number) => ctx.task(jobOfSixtyFour, index));

export const largeResults = workflow(
  "large-results",
  async (ctx, { count, bytes }: { count: number; bytes: number }) => {
    const results = await Promise.all(
      Array.from({ length: count }, (_, index) => ctx.run("large", () => `${index} ${"x".repeat(bytes)}`)),
    );
    return results.length;
  },
);

export const growthDefinitions = [queuedFour, jobOfFour, queuedSixtyFour, jobOfSixtyFour, largeResults] as const;
