// Web ports: time, timers and random ids as every browser and Node have them. The only file of this room that touches the machine.

export interface WebPorts {
  now(): number;
  /** Resolves after a time, or at once when the signal aborts. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  newId(): string;
}

// Captured once: fake timers of tests replace the globals later.
const { setTimeout, clearTimeout } = globalThis;
const { now } = Date;

export const webPorts: WebPorts = {
  now,
  wait: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) return resolve();
      const end = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end, { once: true });
    }),
  // Not crypto.randomUUID: browsers have it on secure pages only.
  newId: () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  },
};
