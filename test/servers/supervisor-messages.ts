// What an owner and its keeper say to each other.

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** What makes it leave at once, without a trace on the machine. */
  readonly endSignal: NodeJS.Signals;
}

export type ToSupervisor = { readonly start: Launch } | { readonly end: true };

export type FromSupervisor =
  | { readonly started: number }
  | { readonly exited: number; readonly how: string }
  | { readonly failed: string };

/** In the server's folder: all it says. */
export const LOG = "log.txt";
