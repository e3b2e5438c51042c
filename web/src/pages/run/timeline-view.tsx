import type { JSX } from "preact";
export default function TimelineView(): JSX.Element {
  return <p />;
}
