// Redacted store: a read-only view of a store that removes secrets from payloads. Do not verify hashes, replay or write
// with it.

import { decode, encode } from "../base/index.ts";
import type { Entry, InboxRow, Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withStore } from "./open-store.ts";
import { redacted } from "./payload-module.ts";

export interface InspectOptions extends GlobalOptions {
  readonly generation?: number;
  readonly showSecrets?: boolean;
}

/** Like `withStore`, for commands that print payloads. */
export function withRedactedStore<T>(options: InspectOptions, work: (store: Store) => Promise<T>): Promise<T> {
  return withStore(options.store, (store) => work(options.showSecrets === true ? store : redactedStore(store)));
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
    async readItems(run, items) {
      const states = await store.readItems(run, items);
      return states.map((one) =>
        one?.failures === undefined ? one : { ...one, failures: redactedText(one.failures) },
      );
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
  const value = decode(text);
  const clean = redacted(value);
  return clean === value ? text : encode(clean);
}
