// Part: a page or a view whose code is loaded when it is first shown.
//
// part.P1. A part that cannot be loaded says so, and is loaded when the server answers again.

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isStale } from "./live.ts";

interface Part<P> {
  readonly load: () => Promise<{ readonly default: ComponentType<P> }>;
}

const loaded = new Map<object, ComponentType<any>>();

/** The component of a part. Without it: what to show instead if it cannot be loaded. */
export function usePart<P>(part: Part<P>): readonly [ComponentType<P> | undefined, JSX.Element | undefined] {
  const [tried, setTried] = useState<{ readonly part: Part<P> }>();
  useEffect(() => {
    if (loaded.has(part)) return;
    const onTried = (): void => setTried({ part });
    part
      .load()
      .then((module) => loaded.set(part, module.default))
      .then(onTried, onTried);
  }, [part, isStale.value]);
  return [loaded.get(part), tried?.part === part ? FAILURE : undefined];
}

const FAILURE = (
  <p role="alert">This part of the dashboard cannot be loaded. The server may have been updated: reload the page.</p>
);
