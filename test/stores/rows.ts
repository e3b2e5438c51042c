// Rows as backends are given them, for tests.

import type { WireRow } from "../../src/stores/remote/backend.ts";

export function runRow(run: number, more: WireRow = {}): WireRow {
  return {
    run,
    id: `run-${run}`,
    generation: 0,
    definition: "order",
    kind: "workflow",
    version: 1,
    status: "queued",
    parent: null,
    parent_command: null,
    root: run,
    priority: 0,
    head: 1,
    chain: "c0",
    arrivals: 0,
    read: 0,
    unread: 0,
    turn_due: 1,
    turn_token: null,
    turn_worker: null,
    takeovers: 0,
    created_at: 1_700_000_000_000,
    ended_at: null,
    runtime: "{}",
    evidence: null,
    lost_turns: 0,
    turn_at: null,
    error_code: null,
    budget: null,
    ...more,
  };
}

export function entryRow(run: number, seq: number, data: string | Uint8Array = "{}"): WireRow {
  return {
    run,
    seq,
    type: "RunStarted",
    command: "",
    data,
    at: 1,
    mark: 2,
    took_ms: null,
    worker: null,
    execution: null,
    started_at: null,
  };
}

export function queueRow(name: string, more: WireRow = {}): WireRow {
  return { name, declared: "{}", limits: "{}", paused: 0, paused_at: null, ...more };
}

export function itemRow(run: number, item: string, more: WireRow = {}): WireRow {
  return {
    run,
    item,
    kind: "task",
    name: "charge",
    priority: 0,
    available_at: 0,
    seq: 1,
    attempt: 0,
    state: 1,
    token: null,
    worker: null,
    takeovers: 0,
    failures: null,
    queue: null,
    key: null,
    executions: 0,
    leased_at: null,
    ...more,
  };
}
