// Polling: reads again what no event announces, such as the length of a queue, while the page is visible and live.

import { useEffect, useRef } from "preact/hooks";
import { isStale } from "./live.ts";

export function usePolling(read: () => unknown, everyMs: number): void {
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && !isStale.peek()) void latest.current();
    }, everyMs);
    return () => clearInterval(timer);
  }, []);
}
