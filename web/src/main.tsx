// The dashboard starts here: address, clock, live connection, keys, then the first page.

import { render } from "preact";
import { startClock } from "./clock.ts";
import { startKeys } from "./keys.ts";
import { startLive } from "./live.ts";
import { startRouter } from "./router.ts";
import { Shell } from "./shell.tsx";
import { startSite } from "./site.ts";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";

startRouter();
startClock();
startKeys();
startLive();
startSite();
render(<Shell />, document.getElementById("app")!);
