// A report over many pages: fetched in parallel, each with its own retries, combined in order.

import { createEngine, FatalError, task, workflow } from "reprise";

export interface Page {
  readonly site: string;
  readonly number: number;
}

export const fetchPage = task(
  "fetch page",
  { retry: { maxAttempts: 3, baseDelay: "20ms" }, timeout: "10 s" },
  async (ctx, page: Page) => {
    if (page.number % 10 === 3 && ctx.attempt === 1) throw new Error("connection reset"); // the second attempt succeeds
    if (page.number === 13) throw new FatalError("page 13 is gone"); // is not retried
    return { number: page.number, words: 100 + page.number };
  },
);

export const report = workflow("report", async (ctx, { site, pages }: { site: string; pages: number }) => {
  const fetched = await Promise.allSettled(
    Array.from({ length: pages }, (_, number) => ctx.task(fetchPage, { site, number })),
  );
  const words = fetched.reduce((sum, page) => sum + (page.status === "fulfilled" ? page.value.words : 0), 0);
  const missing = fetched.flatMap((page, number) => (page.status === "rejected" ? [number] : []));
  return { site, words, missing };
});

export const definitions = [report, fetchPage] as const;

if (import.meta.main) {
  await using engine = await createEngine({
    store: "sqlite::memory:",
    definitions,
    worker: { concurrency: 50 }, // at most fifty pages at once
  });
  const run = await engine.start(report, { site: "example.org", pages: 500 });
  console.log(await run.result());
}
