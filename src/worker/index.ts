// Worker: executes runs. Claims, leases and heartbeats, runs in memory, attempts, group commit.

export type { OutboxHandler } from "./outbox-relay.ts";
export type { HotRun } from "./hot-run.ts";
export { Attempt } from "./attempt.ts";
export type { ForeignAnswer, ForeignMemos, MemoQuestion, SampledMemo } from "./foreign-memos.ts";
export { ItemReturned, type RemoteCall, type RemoteTasks } from "./remote-tasks.ts";
export { RetentionRunner } from "./retention-runner.ts";
export type { OpenedPromise, WebhookBody, WebhookEndpoint } from "./webhook-endpoint.ts";
export { Worker } from "./worker.ts";
export type { WorkerOptions } from "./worker-options.ts";
