// Queues: in work.

import type { JSX } from "preact";
import { useTitle } from "../../title.ts";

export default function QueuesPage(): JSX.Element {
  useTitle("Queues");
  return (
    <div class="head">
      <h1>Queues</h1>
    </div>
  );
}
