// What every command understands.

export interface GlobalOptions {
  /** `sqlite:reprise.db` unless --store or REPRISE_STORE says otherwise. */
  readonly store: string;
  readonly json: boolean;
  /** A module with the codec of the store's payloads. */
  readonly codec?: string;
}

/** The same options, for a command that starts another one. The store may hold a password, and goes by `globalEnv`. */
export function globalArguments({ json, codec }: GlobalOptions): string[] {
  return [...(json ? ["--json"] : []), ...(codec === undefined ? [] : ["--codec", codec])];
}

/** Arguments of a process are there for everybody on the machine to see. */
export function globalEnv({ store }: GlobalOptions): NodeJS.ProcessEnv {
  return { ...process.env, REPRISE_STORE: store };
}
