// Approvals: in work.

import type { JSX } from "preact";
import { useTitle } from "../../title.ts";

export default function ApprovalsPage(): JSX.Element {
  useTitle("Approvals");
  return (
    <div class="head">
      <h1>Approvals</h1>
    </div>
  );
}
