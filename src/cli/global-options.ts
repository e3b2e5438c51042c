// Global options: the options that every command accepts.

export interface GlobalOptions {
  /** From --store or REPRISE_STORE; by default `sqlite:reprise.db`. */
  readonly store: string;
  readonly json: boolean;
  /** Module that exports the codec of the store's payloads. */
  readonly codec?: string;
}

/** The options as arguments for a child process. The store URL can contain a password, so `globalEnv` passes it. */
export function globalArguments({ json, codec }: GlobalOptions): string[] {
  return [...(json ? ["--json"] : []), ...(codec === undefined ? [] : ["--codec", codec])];
}

/** Other users of the machine can read the arguments of a process, but not its environment. */
export function globalEnv({ store }: GlobalOptions): NodeJS.ProcessEnv {
  return { ...process.env, REPRISE_STORE: store };
}
