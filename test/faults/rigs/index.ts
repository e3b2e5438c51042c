// All rigs, in the order of the report.

import type { Rig } from "../rig.ts";
import { natsCarrier, s3Carrier } from "./carriers.ts";
import { clockJumps } from "./clock-jumps.ts";
import { corruption } from "./corruption.ts";
import { crossed, hotRun } from "./crowd.ts";
import { crashesInARow } from "./crashes-in-a-row.ts";
import { deadlocks } from "./deadlocks.ts";
import { diskFull, syncErrors } from "./disk.ts";
import { crashMatrix, race } from "./exactly-once.ts";
import { failoverSync } from "./failover.ts";
import { flowKilled } from "./flow-killed.ts";
import { historyFailedOver, historyRestored } from "./history-cut.ts";
import { migrators } from "./migrators.ts";
import { blackHoles, commitsCut, slowNetwork } from "./network.ts";
import { pgBouncer } from "./pgbouncer.ts";
import { poisonous } from "./poison.ts";
import { powerCuts } from "./power-cuts.ts";
import { schemathesis } from "./schemathesis.ts";
import { serversKilled, serverSyncErrors } from "./servers.ts";
import { workersKilled } from "./workers-killed.ts";
import { stoppedInside, zombies } from "./zombies.ts";

export const RIGS: readonly Rig[] = [
  workersKilled,
  crashesInARow,
  crashMatrix,
  flowKilled,
  serversKilled,
  failoverSync,
  pgBouncer,
  historyRestored,
  historyFailedOver,
  zombies,
  stoppedInside,
  commitsCut,
  blackHoles,
  slowNetwork,
  deadlocks,
  clockJumps,
  diskFull,
  syncErrors,
  serverSyncErrors,
  powerCuts,
  migrators,
  corruption,
  poisonous,
  race,
  crossed,
  hotRun,
  natsCarrier,
  s3Carrier,
  schemathesis,
];
