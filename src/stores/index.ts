// Stores: how a database keeps the kernel's promises. The only room with SQL and drivers.
//
// Here they are only named: the code of one is loaded when it is opened.

export { mysql } from "./mysql/source.ts";
export { postgres } from "./postgres/source.ts";
export { isServer, shownUrl, sqlitePathOf, storeOf } from "./store-url.ts";
export { sqlite, type OpenOptions, type StoreSource } from "./source.ts";
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
} from "./threads.ts";
