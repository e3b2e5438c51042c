// Exceptions: tests that say something which is true on SQLite alone, and why.

const IN_ONE_TURN = "counts on a commit that takes no turn of the event loop, as SQLite's does";
const BESIDE = "looks at SQLite's tables from beside";
const USER_SQL = "its function takes a handle on SQLite";
const PROCESSES = "is about a file that another process opens";
const MANY = "thousands of commits one after the other, which take minutes over promises";

/** By name. */
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
  [
    "up to a thousand runs with waiting nodes stay in memory; the others run their nodes again when the answer arrives",
    MANY,
  ],
]);
