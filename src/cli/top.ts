// reprise top: how workers and queues stand, drawn anew every second.
//
// T1. The terminal is as it was when the command ends, however it ends.
// T2. A look that fails is said, and the next one is tried: whoever watches wants to see the store come back.

import { RepriseError, systemTimers, toMs, type Duration } from "../base/index.ts";
import { shownUrl } from "../stores/index.ts";
import type { Store } from "../kernel/index.ts";
import type { GlobalOptions } from "./global-options.ts";
import { reading } from "./open-store.ts";
import { EXIT } from "./exit-codes.ts";
import { lineWidth, paint, print, printJson } from "./output.ts";
import { onInterrupt } from "./signals.ts";
import { clipPainted, plain } from "./text.ts";
import { lookAt, topJson, topLines, type Look } from "./top-view.ts";

export interface TopOptions extends GlobalOptions {
  readonly once?: boolean;
  readonly interval: Duration;
}

export async function top(options: TopOptions): Promise<number> {
  const everyMs = Math.max(100, toMs(options.interval, "--interval"));
  const title = shownUrl(options.store);
  return reading(options.store, async (store) => {
    if (options.once === true) {
      await show(await lookAt(store), title, options.json);
      return EXIT.ok;
    }
    if (options.json || !process.stdout.isTTY) return repeat(store, everyMs, title, options.json);
    return watch(store, everyMs, title);
  });
}

async function show(look: Look, title: string, json: boolean): Promise<void> {
  if (json) return printJson(topJson(look));
  for (const line of topLines(look, title, process.stdout.isTTY ? lineWidth() : Number.POSITIVE_INFINITY))
    await print(line);
}

/** For programs, and for files: one after the other. */
async function repeat(store: Store, everyMs: number, title: string, json: boolean): Promise<number> {
  onInterrupt({ isUsualEnd: true, say: () => {}, cleanUp: async () => {} });
  for (;;) {
    await show(await lookAt(store), title, json);
    if (!json) await print("");
    await pause(everyMs);
  }
}

async function watch(store: Store, everyMs: number, title: string): Promise<number> {
  const screen = new FullScreen();
  onInterrupt({ isUsualEnd: true, say: () => {}, cleanUp: async () => screen.close() });
  screen.open();
  try {
    let last: Look | undefined;
    for (;;) {
      let trouble = "";
      try {
        last = await lookAt(store);
      } catch (error) {
        // T2
        if (!(error instanceof RepriseError)) throw error;
        trouble = `${error.code}: ${error.message}`;
      }
      const draw = (): void => {
        const lines = last === undefined ? [] : topLines(last, title, screen.width);
        screen.draw(trouble === "" ? lines : [paint("red", plain(trouble)), ...lines]);
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

/** The whole terminal, on a screen of its own, so that what stood there before stands there again afterwards (T1). */
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

  /** Every line is cut to the width: one that wraps would push the last ones out. */
  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const height = process.stdout.rows ?? 24;
    const left = lines.length - height;
    const shown = left > 0 ? [...lines.slice(0, height - 1), paint("dim", `… ${left + 1} more lines`)] : lines;
    const text = shown.map((line) => `${clipPainted(line, this.width)}\u001b[K`).join("\r\n");
    process.stdout.write(`\u001b[H${text}\u001b[J`);
  }

  /** Draws at once when the terminal gets another size. */
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
