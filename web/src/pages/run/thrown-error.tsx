// A thrown error: its message, then the frames of the user's own code; the others are counted.

import type { JSX } from "preact";
import type { ThrownError } from "../../../../src/contract/run.ts";
import { plural } from "../../format.ts";

export function ErrorBox({ error }: { readonly error: ThrownError }): JSX.Element {
  const frames = error.frames ?? [];
  const hidden = error.hiddenFrames ?? 0;
  return (
    <div class="err">
      <p>
        {error.name}: {error.message}
        {error.code !== undefined && error.code !== error.name && <span class="muted"> {error.code}</span>}
      </p>
      {(frames.length > 0 || hidden > 0) && (
        <pre tabIndex={0} role="region" aria-label="Stack">
          {frames.map((frame, index) => (
            <span class="own" key={index} title={frame.trim()}>
              {shortFrame(frame)}
              {"\n"}
            </span>
          ))}
          {hidden > 0 && <span class="oth">▸ {plural(hidden, "frame")} of node and reprise</span>}
        </pre>
      )}
    </div>
  );
}

/** A frame with the end of its path: `at charge (…/src/payments.ts:42:13)`. */
export function shortFrame(frame: string): string {
  return frame
    .trim()
    .replace(/(?:file:\/\/)?(?:[A-Za-z]:)?[\\/][^\s()]*[\\/]([^\\/\s()]+[\\/][^\\/\s()]+:\d+)/, "…/$1");
}
