// Exit codes of the process. Every start of the program loads this file, so it imports nothing.
//
// 0 success · 1 a problem was found, the run failed, or a named object was not changed · 2 usage · 3 store · 4 determinism, or a stopped run · of `verify`: 5 damaged, 6 untrusted, 7 incomplete, 8 inconclusive, 9 impure · 129, 130, 143 a signal (cli.S1).

export const EXIT = {
  ok: 0,
  problem: 1,
  usage: 2,
  store: 3,
  determinism: 4,
  damaged: 5,
  untrusted: 6,
  incomplete: 7,
  inconclusive: 8,
  impure: 9,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const;
