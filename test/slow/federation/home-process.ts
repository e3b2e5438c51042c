// A process that takes a log into a home, batch by batch, and kills itself at the n-th boundary of a statement that writes: before or
// after it. Prints how many boundaries there
// were when the home was open, and at the end, if it lives.

import { DatabaseSync, StatementSync } from "node:sqlite";
import { flushCompileCache } from "node:module";
import { openHome } from "../../../src/federation/home/home.ts";
import { batches, erasedKey, crashOrigin } from "./home-crash-log.ts";

const [folder = "", shards = "1", kill = "0"] = process.argv.slice(2);
// A process that is killed leaves no cache behind.
flushCompileCache();

let boundaries = 0;
function boundary(): void {
  boundaries += 1;
  if (boundaries === Number(kill)) process.kill(process.pid, "SIGKILL");
}

/** Statements within a transaction are alike: only every fifth of them is a boundary. What begins, commits or copies always is. */
const EVERY = 5;
let runs = 0;

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (sql) {
  boundary();
  exec.call(this, sql);
  boundary();
};
const { run } = StatementSync.prototype;
StatementSync.prototype.run = function (this: StatementSync, ...args: never[]) {
  const result = run.apply(this, args as unknown as Parameters<typeof run>);
  runs += 1;
  if (runs % EVERY === 0) boundary();
  return result;
};

const home = openHome(folder, { shards: Number(shards), limits: { batchRecords: 3 } });
home.admit(crashOrigin().key.vkey);
const opening = boundaries;
for (const batch of batches(home)) {
  const outcome = home.ingest(batch);
  if (outcome.status === "refused" || outcome.status === "forked") throw new Error(JSON.stringify(outcome));
}
// Another process may have stored the last records, and not made them visible yet.
home.ingest({ ...crashOrigin().batchFrom(7, 7), checkpoint: crashOrigin().checkpoint(7) });
if (home.contentState(erasedKey()) !== "erased") throw new Error("the content is not erased");
home.close();
console.log(opening, boundaries);
