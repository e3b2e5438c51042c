// Schedules: in work.

import type { JSX } from "preact";
import { useTitle } from "../../title.ts";

export default function SchedulesPage(): JSX.Element {
  useTitle("Schedules");
  return (
    <div class="head">
      <h1>Schedules</h1>
    </div>
  );
}
