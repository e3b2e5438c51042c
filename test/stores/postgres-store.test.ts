// Every promise of a store, on a real PostgreSQL.

import { testStoreOn } from "./server-world.ts";

testStoreOn("postgres", "a store on PostgreSQL");
