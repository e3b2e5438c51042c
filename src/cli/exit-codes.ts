// Exit codes of the process. Every start of the program loads this file, so it imports nothing.
//
// 0 success · 1 a problem was found, the run failed, or no named run was changed · 2 usage · 3 store · 4 determinism, or a stopped run · 130 Ctrl-C.

export const EXIT = {
  ok: 0,
  problem: 1,
  usage: 2,
  store: 3,
  determinism: 4,
  hungUp: 129,
  interrupted: 130,
  terminated: 143,
} as const;
