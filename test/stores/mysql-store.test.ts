// Every store case, on a real MariaDB.

import { testStoreOn } from "./server-fixture.ts";

testStoreOn("mysql", "a store on MariaDB");
