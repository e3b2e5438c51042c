// Stream view: the streams of a run on their own, for runs without a picture.

import type { JSX } from "preact";
import { StreamPanel } from "../../stream/stream-panel.tsx";
import { ViewSwitch } from "./view-switch.tsx";
import type { RunViewProps } from "./views.ts";

export default function StreamView({ run }: RunViewProps): JSX.Element {
  return (
    <>
      <p class="row view-row">
        <ViewSwitch run={run} />
      </p>
      <StreamPanel run={run} />
    </>
  );
}
