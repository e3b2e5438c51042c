// vitest's global set-up: builds the dashboard if its files changed, so that tests of the server and of pages find it.

import { provideWeb } from "../../scripts/web.mjs";

export default function setUp(): void {
  provideWeb();
}
