// Proof: in work.

import type { JSX } from "preact";
import { useTitle } from "../../title.ts";

export default function ProofPage(): JSX.Element {
  useTitle("Proof");
  return (
    <div class="head">
      <h1>Proof</h1>
    </div>
  );
}
