// How a command is ended from outside: Ctrl-C, a polite kill, a reader that has seen enough.

import { EXIT } from "./exit-codes.ts";

export interface OnInterrupt {
  /** What to do before the process ends. */
  readonly cleanUp: () => Promise<void>;
  /** A command that is meant to be ended this way ends well when it could clean up. */
  readonly isUsualEnd?: boolean;
  /** Says that it is stopping, where the usual words do not fit. */
  readonly say?: () => void;
  /** What the second time does besides ending at once. */
  readonly abandon?: () => void;
}

let handler: OnInterrupt | undefined;
let interrupted = false;

/** Without it the process ends at once. */
export function onInterrupt(given: OnInterrupt): void {
  handler = given;
}

/** True once Ctrl-C was pressed: whatever a command still reports is only its echo. */
export function isInterrupted(): boolean {
  return interrupted;
}

function sayStopping(): void {
  process.stderr.write("stopping: what is at work may finish; once more to stop at once\n");
}

export function listenForSignals(): void {
  const end = (code: number): void => {
    // The second time somebody means it.
    if (interrupted || handler === undefined) {
      handler?.abandon?.();
      process.exit(code);
    }
    interrupted = true;
    const { cleanUp, isUsualEnd = false, say = sayStopping } = handler;
    say();
    cleanUp().then(
      () => process.exit(isUsualEnd ? EXIT.ok : code),
      () => process.exit(isUsualEnd ? EXIT.problem : code),
    );
  };
  process.on("SIGINT", () => end(EXIT.interrupted));
  process.on("SIGTERM", () => end(EXIT.terminated));
  // The terminal was closed: nobody reads on, and the work at hand may still finish.
  process.on("SIGHUP", () => end(EXIT.hungUp));
  // `| head` closes the pipe: nobody reads on, so there is nothing more to do.
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
      // Whoever is cleaning up does so unheard.
      if (!interrupted) process.exit(EXIT.ok);
    });
}
