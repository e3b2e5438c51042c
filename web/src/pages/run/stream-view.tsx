// Stream view: the streams of a run on their own, for runs without a picture.

import type { JSX } from "preact";
import { StreamPanel } from "../../stream/stream-panel.tsx";
import type { RunViewProps } from "./views.ts";

export default function StreamView({ run }: RunViewProps): JSX.Element {
  return <StreamPanel run={run} />;
}
