// Supervisor messages: the protocol between a process and its supervisor.

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly uid?: number | undefined;
  readonly gid?: number | undefined;
  /** The signal that ends it at once and leaves nothing on the machine. */
  readonly endSignal: NodeJS.Signals;
}

export type ToSupervisor = { readonly start: Launch } | { readonly end: true };

export type FromSupervisor =
  | { readonly started: number }
  | { readonly exited: number; readonly how: string }
  | { readonly failed: string };

/** The log file in the server's folder. */
export const LOG = "log.txt";
