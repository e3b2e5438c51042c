// Clock: the one clock of the page. It ticks once per second and stops in hidden tabs; every age and duration reads it.

import { signal } from "@preact/signals";

/** How far the server's clock is ahead of this machine's, in ms. */
let offset = 0;

/** The server's time in ms. */
export const now = signal(Date.now());

/** Adjusts the clock to a time that the server sent. */
export function setServerTime(time: string): void {
  const ahead = Date.parse(time) - Date.now();
  // A difference below a second is mostly the way of the answer.
  offset = Math.abs(ahead) < 1000 ? 0 : ahead;
  tick();
}

/** The server's time now, without waiting for the next tick. */
export function serverNow(): number {
  return Date.now() + offset;
}

/** This machine's time; a component that reads it is drawn again with every tick. */
export function localNow(): number {
  void now.value;
  return Date.now();
}

function tick(): void {
  now.value = serverNow();
}

let timer: ReturnType<typeof setInterval> | undefined;

export function startClock(): void {
  const follow = (): void => {
    clearInterval(timer);
    if (document.hidden) return;
    tick();
    timer = setInterval(tick, 1000);
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}
