// Redacted store: a read-only view of a store that removes secrets from payloads. Do not verify hashes, replay or write
// with it.

import { decode, encode } from "../base/index.ts";
import type { Entry, InboxRow, OpenPromise, Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withStoreToRead } from "./open-store.ts";
import { redacted } from "./payload-module.ts";

export interface InspectOptions extends GlobalOptions {
  readonly generation?: number;
  readonly showSecrets?: boolean;
}

/** Like `withStoreToRead`, for commands that print payloads. */
export function withRedactedStore<T>(options: InspectOptions, work: (store: Store) => Promise<T>): Promise<T> {
  return withStoreToRead(options.store, (store) => work(options.showSecrets === true ? store : redactedStore(store)));
}

export function redactedStore(store: Store): Store {
  const view: Partial<Store> = {
    async findRun(id, generation) {
      const record = await store.findRun(id, generation);
      return record?.evidence === undefined ? record : { ...record, evidence: redactedText(record.evidence) };
    },
    async readJournal(run, after, limit) {
      return (await store.readJournal(run, after, limit)).map(redactedRow<Entry>);
    },
    async listPromises(filter) {
      const page = await store.listPromises(filter);
      return { ...page, promises: page.promises.map(redactedRow<OpenPromise>) };
    },
    async readItems(run, items) {
      const states = await store.readItems(run, items);
      return states.map((one) =>
        one?.failures === undefined ? one : { ...one, failures: redactedText(one.failures) },
      );
    },
    async readRunWork(run) {
      const work = await store.readRunWork(run);
      if (work === undefined) return undefined;
      const items = work.items.map((one) =>
        one.failures === undefined ? one : { ...one, failures: redactedText(one.failures) },
      );
      return { ...work, items };
    },
    async readAttempts(run, step) {
      const attempts = await store.readAttempts(run, step);
      return attempts.map((one) => (one.data === undefined ? one : { ...one, data: redactedText(one.data) }));
    },
    async readInbox(run, after) {
      return (await store.readInbox(run, after)).map(redactedRow<InboxRow>);
    },
  };
  return new Proxy(store, {
    get(target, key) {
      const changed = view[key as keyof Store];
      if (changed !== undefined) return changed;
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

function redactedRow<R extends { readonly data: string }>(row: R): R {
  const data = redactedText(row.data);
  return data === row.data ? row : { ...row, data };
}

function redactedText(text: string): string {
  // A request of a budget has no entry.
  if (text === "") return text;
  const value = decode(text);
  const clean = redacted(value);
  return clean === value ? text : encode(clean);
}
