// How a command is ended from outside: Ctrl-C, a polite kill, a reader that has seen enough.

import { EXIT } from "./output.ts";

let cleanUp: (() => Promise<void>) | undefined;
let interrupted = false;

/** What to do before the process ends on Ctrl-C; without it the process ends at once. */
export function onInterrupt(work: () => Promise<void>): void {
  cleanUp = work;
}

/** True once Ctrl-C was pressed: whatever a command still reports is only its echo. */
export function isInterrupted(): boolean {
  return interrupted;
}

export function listenForSignals(): void {
  const end = (code: number): void => {
    // The second time somebody means it.
    if (interrupted || cleanUp === undefined) process.exit(code);
    interrupted = true;
    process.stderr.write("stopping: what is at work may finish; once more to stop at once\n");
    cleanUp().then(
      () => process.exit(code),
      () => process.exit(code),
    );
  };
  process.on("SIGINT", () => end(EXIT.interrupted));
  process.on("SIGTERM", () => end(EXIT.terminated));
  // `| head` closes the pipe: nobody reads on, so there is nothing more to do.
  for (const stream of [process.stdout, process.stderr])
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      process.exit(EXIT.ok);
    });
}
