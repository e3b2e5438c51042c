// What every command understands.

export interface GlobalOptions {
  /** `sqlite:reprise.db` unless --store or REPRISE_STORE says otherwise. */
  readonly store: string;
  readonly json: boolean;
}
