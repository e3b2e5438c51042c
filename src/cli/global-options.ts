// What every command understands.

export interface GlobalOptions {
  /** `sqlite:reprise.db` unless --store or REPRISE_STORE says otherwise. */
  readonly store: string;
  readonly json: boolean;
  /** A module with the codec of the store's payloads. */
  readonly codec?: string;
}

/** The same options, for a command that starts another one. */
export function globalArguments({ store, json, codec }: GlobalOptions): string[] {
  return ["--store", store, ...(json ? ["--json"] : []), ...(codec === undefined ? [] : ["--codec", codec])];
}
