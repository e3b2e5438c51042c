// Global options: the options that every command accepts.

/** The store of a command without --store and REPRISE_STORE. */
export const DEFAULT_STORE = "sqlite:reprise.db";

export interface GlobalOptions {
  /** From --store or REPRISE_STORE; by default `sqlite:reprise.db`. */
  readonly store: string;
  readonly json: boolean;
  /** Module that exports the codec of the store's payloads. */
  readonly codec?: string;
  /** From --home or REPRISE_HOME: the folder of the signing key and of the mirrors (home.ts). */
  readonly home?: string;
}

/** The options as arguments for a child process. The store URL can contain a password, so `globalEnv` passes it. */
export function globalArguments({ json, codec, home }: GlobalOptions): string[] {
  return [
    ...(json ? ["--json"] : []),
    ...(codec === undefined ? [] : ["--codec", codec]),
    ...(home === undefined ? [] : ["--home", home]),
  ];
}

/** Other users of the machine can read the arguments of a process, but not its environment. */
export function globalEnv({ store }: GlobalOptions): NodeJS.ProcessEnv {
  return { ...process.env, REPRISE_STORE: store };
}

let storeToSuggest: string | undefined;

/** Keeps the store of this command line for the commands that its output suggests (next-command.ts). */
export async function rememberStore(url: string): Promise<void> {
  storeToSuggest = undefined;
  if (url === DEFAULT_STORE) return;
  // Loaded here: every start of the program loads this file.
  const { shownUrl } = await import("../stores/index.ts");
  const shown = shownUrl(url);
  // REPRISE_STORE has the password that the shown URL lacks, and it also applies to the next command of the shell.
  if (shown !== url && url === process.env["REPRISE_STORE"]) return;
  storeToSuggest = shown;
}

/** The URL for --store in a suggested command, without a password. Undefined if the command needs no --store. */
export function suggestedStore(): string | undefined {
  return storeToSuggest;
}
