import { describeOn } from "../../servers/index.ts";
import { faultsOn } from "./faults-on.ts";

describeOn("mysql", "faults", () => faultsOn("mysql"));
