// A store as somebody looks at it: secrets are taken out of the payloads it gives. Nothing that is checked against its
// hashes, replayed or written may come from here.

import { decode, encode } from "../base/index.ts";
import type { Entry, InboxRow, Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { reading } from "./open-store.ts";
import { shown } from "./payload-module.ts";

export interface LookOptions extends GlobalOptions {
  readonly generation?: number;
  readonly showSecrets?: boolean;
}

/** As `reading`, for commands that show payloads. */
export function looking<T>(options: LookOptions, work: (store: Store) => Promise<T>): Promise<T> {
  return reading(options.store, (store) => work(options.showSecrets === true ? store : shownStore(store)));
}

export function shownStore(store: Store): Store {
  const view: Partial<Store> = {
    async findRun(id, generation) {
      const record = await store.findRun(id, generation);
      return record?.evidence === undefined ? record : { ...record, evidence: shownText(record.evidence) };
    },
    async readJournal(run, after, limit) {
      return (await store.readJournal(run, after, limit)).map(shownRow<Entry>);
    },
    async readItems(run, items) {
      const states = await store.readItems(run, items);
      return states.map((one) => (one?.failures === undefined ? one : { ...one, failures: shownText(one.failures) }));
    },
    async readInbox(run, after) {
      return (await store.readInbox(run, after)).map(shownRow<InboxRow>);
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

function shownRow<R extends { readonly data: string }>(row: R): R {
  const data = shownText(row.data);
  return data === row.data ? row : { ...row, data };
}

function shownText(text: string): string {
  const value = decode(text);
  const clean = shown(value);
  return clean === value ? text : encode(clean);
}
