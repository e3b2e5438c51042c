// Stores: the databases behind the kernel's `Store` port. The only room with drivers; SQL is also in federation/home.
//
// This file loads no driver: opening a store loads the code of its database.

export { placeAddress } from "./contents/place-address.ts";
export { mysql } from "./mysql/source.ts";
export { postgres } from "./postgres/source.ts";
export { isBusy, storeErrorOf } from "./sqlite/errors.ts";
export { isServer, shownUrl, sqlitePathOf, storeOf } from "./store-url.ts";
export { sqlite, type OpenOptions, type StoreSource } from "./store-source.ts";
export {
  threadsOf,
  type ChannelVersion,
  type NewChannel,
  type NewThreadCheckpoint,
  type Serialized,
  type StoredChannel,
  type ThreadCheckpoint,
  type Threads,
  type ThreadWrite,
} from "./thread-store.ts";
