// reprise top: a live view of workers, queues and throughput.
//
// top.T1. The terminal is restored when the command ends, however it ends.
// top.T2. If a snapshot fails, the error is shown and the next snapshot is tried, so that the view recovers with the store.

import { RepriseError, systemTimers, toMs, type Duration } from "../base/index.ts";
import { shownUrl } from "../stores/index.ts";
import type { Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { withStoreToRead } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { onInterrupt } from "./signals.ts";
import { clipPainted, plain } from "./text.ts";
import { readSnapshot, topJson, topLines, type Snapshot } from "./top-view.ts";

export interface TopOptions extends GlobalOptions {
  readonly once?: boolean;
  readonly interval: Duration;
}

export async function top(options: TopOptions): Promise<number> {
  const everyMs = Math.max(100, toMs(options.interval, "--interval"));
  const title = shownUrl(options.store);
  return withStoreToRead(options.store, async (store) => {
    if (options.once === true) {
      await show(await readSnapshot(store), title, options.json);
      return EXIT.ok;
    }
    if (options.json || !process.stdout.isTTY) return repeat(store, everyMs, title, options.json);
    return watch(store, everyMs, title);
  });
}

async function show(snapshot: Snapshot, title: string, json: boolean): Promise<void> {
  if (json) return printJson(topJson(snapshot));
  for (const line of topLines(snapshot, title, process.stdout.isTTY ? lineWidth() : Number.POSITIVE_INFINITY))
    await print(line);
}

/** For pipes and files: prints one snapshot after the other. */
async function repeat(store: Store, everyMs: number, title: string, json: boolean): Promise<number> {
  onInterrupt({ announce: () => {}, cleanUp: async () => {} });
  for (;;) {
    await show(await readSnapshot(store), title, json);
    if (!json) await print("");
    await pause(everyMs);
  }
}

async function watch(store: Store, everyMs: number, title: string): Promise<number> {
  const screen = new FullScreen();
  onInterrupt({ announce: () => {}, cleanUp: async () => screen.close() });
  screen.open();
  try {
    let last: Snapshot | undefined;
    for (;;) {
      let problem = "";
      try {
        last = await readSnapshot(store);
      } catch (error) {
        // top.T2
        if (!(error instanceof RepriseError)) throw error;
        problem = `${error.code}: ${error.message}`;
      }
      const draw = (): void => {
        const lines = last === undefined ? [] : topLines(last, title, screen.width);
        screen.draw(problem === "" ? lines : [paint("red", plain(problem)), ...lines]);
      };
      draw();
      await screen.untilResized(everyMs, draw);
    }
  } finally {
    screen.close();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void systemTimers.set(ms, resolve));
}

/** The alternate screen of the terminal, so that the previous content comes back (top.T1). */
class FullScreen {
  #isOpen = false;

  get width(): number {
    return process.stdout.columns ?? 80;
  }

  open(): void {
    this.#isOpen = true;
    process.once("exit", () => this.close());
    process.stdout.write("\u001b[?1049h\u001b[?25l");
  }

  /** Clips every line: a wrapped line would scroll the screen. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const height = process.stdout.rows ?? 24;
    const left = lines.length - height;
    const shown = left > 0 ? [...lines.slice(0, height - 1), paint("dim", `… ${left + 1} more lines`)] : lines;
    const text = shown.map((line) => `${clipPainted(line, this.width)}\u001b[K`).join("\r\n");
    process.stdout.write(`\u001b[H${text}\u001b[J`);
  }

  /** Redraws immediately when the terminal is resized. */
  async untilResized(ms: number, draw: () => void): Promise<void> {
    process.stdout.on("resize", draw);
    await pause(ms);
    process.stdout.off("resize", draw);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    process.stdout.write("\u001b[?25h\u001b[?1049l");
  }
}
