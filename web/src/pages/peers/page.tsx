// Peers: in work.

import type { JSX } from "preact";
import { useTitle } from "../../title.ts";

export default function PeersPage(): JSX.Element {
  useTitle("Peers");
  return (
    <div class="head">
      <h1>Peers</h1>
    </div>
  );
}
