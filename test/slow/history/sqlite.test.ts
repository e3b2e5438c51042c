import { historyOn } from "./history-on.ts";

historyOn("sqlite");
