// A worker process of the browser tests: <folder> <store> <lease in ms>.

import { createEngine } from "reprise";
import { shop } from "./shop.ts";

const [, , folder = ".", store = "", leaseMs = "1000"] = process.argv;
process.chdir(folder);
await createEngine({ store, definitions: shop, logger: false, worker: { lease: Number(leaseMs) } });
process.send?.("ready");
