// Exceptions: tests that hold only on SQLite, and why.

const IN_ONE_TURN = "relies on a synchronous commit, as SQLite's";
const BESIDE = "reads SQLite's tables directly";
const USER_SQL = "its ctx.tx function uses a SQLite handle";
const PROCESSES = "uses a file that another process opens";
const MANY = "thousands of sequential commits, which take minutes on an asynchronous store";

/** By test name. */
export const EXCEPTIONS: ReadonlyMap<string, string> = new Map([
  ["what comes before the code waits is kept, and taking it leaves no entry", IN_ONE_TURN],
  ["the input of a schedule is encrypted like every payload, and one that is damaged stops no other", BESIDE],
  ["ACC 17 diamond: with 1 workers, in any order of ends, the join is queued once and runs once", BESIDE],
  ["ACC 17 diamond: with 16 workers, in any order of ends, the join is queued once and runs once", BESIDE],
  [
    "ACC 19 overflow: an arrival too many aborts the commit, blocks the run with the node, and the counter stays",
    BESIDE,
  ],
  ["recorded replay: one changed byte of a response is a mismatch that names step, node and attempt", BESIDE],
  [
    "resume: steps before the checkpoint come from the journal, those after it are live, and the store is unchanged",
    BESIDE,
  ],
  ["a task with a damaged entry stops its own run, and no other", BESIDE],
  ["a retried node runs the user SQL of each attempt once, and keeps chunks and answers in order", USER_SQL],
  [
    "a replay makes no call at all: in a process without network it ends in the identical state, byte for byte",
    PROCESSES,
  ],
  ["a failing message is retried without limit, and the messages after it wait", MANY],
  ["10,000 waiting runs use no more memory than the cache, and all of them continue", MANY],
  ["runs with waiting nodes that fit stay in memory; the others run their nodes again when the answer arrives", MANY],
]);
