// Signals: ends a command on Ctrl-C, SIGTERM, SIGHUP, or when the reader closes the pipe.
//
// cli.S1. Every command that a signal ends exits with 128 and the number of the signal, after it has cleaned up. The only
//   exception is SIGTERM for a service: service managers stop it that way, and systemd takes 143 for a failure.

import { EXIT } from "./exit-codes.ts";

export interface InterruptHandler {
  /** Runs before the process ends. */
  readonly cleanUp: () => Promise<void>;
  /** SIGTERM is the normal end of the command: the exit code is 0 if `cleanUp` succeeds, otherwise 1 (cli.S1). */
  readonly isService?: boolean;
  /** Prints that the command is stopping; replaces the default text. */
  readonly announce?: () => void;
  /** Runs on the second signal, before the process exits immediately. */
  readonly abandon?: () => void;
}

export const STOPPING = "stopping: waiting for running steps to finish; press Ctrl-C again to exit immediately";

let handler: InterruptHandler | undefined;
let interrupted = false;

/** Without a handler, a signal ends the process immediately. */
export function onInterrupt(given: InterruptHandler): void {
  handler = given;
}

/** True after a signal: errors that the command reports from then on are consequences of it. */
export function isInterrupted(): boolean {
  return interrupted;
}

function announceStop(): void {
  process.stderr.write(`${STOPPING}\n`);
}

export function listenForSignals(): void {
  const end = (code: number): void => {
    // The second signal ends the process immediately.
    if (interrupted || handler === undefined) {
      handler?.abandon?.();
      process.exit(code);
    }
    interrupted = true;
    const { cleanUp, isService = false, announce = announceStop } = handler;
    const isNormalEnd = isService && code === EXIT.terminated;
    announce();
    cleanUp().then(
      () => process.exit(isNormalEnd ? EXIT.ok : code),
      () => process.exit(isNormalEnd ? EXIT.problem : code),
    );
  };
  process.on("SIGINT", () => end(EXIT.interrupted));
  process.on("SIGTERM", () => end(EXIT.terminated));
  // The terminal was closed: nothing is printed, but running steps can finish.
  process.on("SIGHUP", () => end(EXIT.hungUp));
  // `| head` closes the pipe: there is no reader, so the command can end.
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
      // A command that is cleaning up continues without output.
      if (!interrupted) process.exit(EXIT.ok);
    });
}
