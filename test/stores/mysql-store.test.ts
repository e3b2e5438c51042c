// Every promise of a store, on a real MariaDB.

import { testStoreOn } from "./server-world.ts";

testStoreOn("mysql", "a store on MariaDB");
