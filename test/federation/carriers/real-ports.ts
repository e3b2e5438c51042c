import { systemClock, systemRandom, systemTimers } from "../../../src/base/index.ts";
import type { CarrierPorts } from "../../../src/federation/index.ts";

export const PORTS: CarrierPorts = { clock: systemClock, timers: systemTimers, random: systemRandom };
