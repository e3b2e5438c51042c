// Site log: keeps the log of this site's store, and its copy in the home, up to date.
//
// site-log.L1. One process may call at any time; calls run one after the other, and callers that wait share the next one.
// site-log.L2. Once an hour a sweep notes runs that ended without a note: before the store was federated, and in processes that had not
//   yet learned of it (log.L5).

import type { SigningKey } from "../receipts/index.ts";
import type { Clock } from "../base/index.ts";
import type { Store } from "../kernel/index.ts";
import type { Home } from "./home/home.ts";
import { findNextKey, finishRotation, nextKey } from "./key-file.ts";
