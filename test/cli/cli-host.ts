// CLI host: runs command lines one after the other in one process, for tests of their output (`command` in cli-process.ts).

import { runCommandLine } from "../../src/cli/program.ts";
import type { Finished } from "./cli-process.ts";

/** A request; the answers come in the same order. */
export interface CommandRequest {
  readonly args: readonly string[];
  readonly cwd: string;
}

type Stream = NodeJS.WriteStream & { fd: 1 | 2 };

/** Collects the output until the request ends. */
function kept(stream: Stream): () => string {
  let text = "";
  stream.write = (chunk: string | Uint8Array): boolean => {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    return true;
  };
  return () => {
    const taken = text;
    text = "";
    return taken;
  };
}

const [stdout, stderr] = [kept(process.stdout as Stream), kept(process.stderr as Stream)];
// Each command listens for signals and for the end of its output.
for (const emitter of [process, process.stdout, process.stderr]) emitter.setMaxListeners(0);

let last: Promise<void> = Promise.resolve();

async function answer({ args, cwd }: CommandRequest): Promise<void> {
  process.chdir(cwd);
  const code = await runCommandLine(args);
  process.send?.({ code, stdout: stdout(), stderr: stderr() } satisfies Finished);
}

process.on("message", (asked) => void (last = last.then(() => answer(asked as CommandRequest))));
process.on("disconnect", () => process.exit());
