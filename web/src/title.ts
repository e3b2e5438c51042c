// Title: the title of the browser's tab, and the first thing that a screen reader says about a new page.

import { useEffect } from "preact/hooks";

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = title === "" ? "Reprise" : `${title} · Reprise`;
  }, [title]);
}
