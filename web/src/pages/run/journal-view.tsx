import type { JSX } from "preact";
export default function JournalView(): JSX.Element {
  return <p />;
}
