// Polling: reads again what no event announces, such as the length of a queue, while the page is visible and live.

import { useEffect } from "preact/hooks";
import { isStale } from "./live.ts";

export function usePolling(read: () => unknown, everyMs: number): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && !isStale.peek()) void read();
    }, everyMs);
    return () => clearInterval(timer);
  }, []);
}
