import type { JSX } from "preact";
import { useTitle } from "../../title.ts";
export default function RunsPage(): JSX.Element {
  useTitle("Runs");
  return <h1>Runs</h1>;
}
