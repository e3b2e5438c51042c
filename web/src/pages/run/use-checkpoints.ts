// Checkpoints of a run, page by page, kept up to date: only the last page is read again.

import { useEffect, useRef, useState } from "preact/hooks";
import type { CheckpointBody } from "../../../../src/contract/history.ts";
import { at, get, Problem } from "../../api.ts";
import { onChange } from "../../live.ts";

interface Loaded {
  readonly items: readonly CheckpointBody[];
  readonly isComplete: boolean;
  readonly problem?: Problem;
}

const PAGE = 200;
const EVERY_MS = 300;

export function useCheckpoints(run: string, isGraph: boolean): Loaded {
  const [loaded, setLoaded] = useState<Loaded>({ items: [], isComplete: false });
  const pages = useRef<{ after: string | undefined; items: readonly CheckpointBody[] }[]>([]);
  useEffect(() => {
    if (!isGraph) return undefined;
    const aborter = new AbortController();
    let underway = false;
    let again = false;
    const load = async (): Promise<void> => {
      if (underway) {
        again = true;
        return;
      }
      underway = true;
      try {
        for (;;) {
          again = false;
          let cursor = pages.current.at(-1)?.after;
          pages.current.pop();
          for (;;) {
            const page: { items: readonly CheckpointBody[]; next?: string } = await get(
              at`/v1/runs/${run}/checkpoints`,
              {
                query: { limit: PAGE, after: cursor },
                signal: aborter.signal,
              },
            );
            pages.current.push({ after: cursor, items: page.items });
            cursor = page.next;
            setLoaded({ items: pages.current.flatMap(({ items }) => items), isComplete: cursor === undefined });
            if (cursor === undefined) break;
          }
          if (!isAgain()) break;
        }
      } catch (thrown) {
        if (!aborter.signal.aborted && thrown instanceof Problem)
          setLoaded((before) => ({ ...before, isComplete: true, problem: thrown }));
      } finally {
        underway = false;
      }
    };
    const isAgain = (): boolean => again;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onChange(({ kind, data }) => {
      if (kind !== "reset" && kind !== "resumed" && !(kind === "run" && data["id"] === run)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        void load();
      }, EVERY_MS);
    });
    void load();
    return () => {
      stop();
      clearTimeout(timer);
      aborter.abort();
    };
  }, [run, isGraph]);
  return loaded;
}
