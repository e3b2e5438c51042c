// Every store case, on a real PostgreSQL.

import { testStoreOn } from "./server-fixture.ts";

testStoreOn("postgres", "a store on PostgreSQL");
