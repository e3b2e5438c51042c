// The workflows of temporal.mjs: Temporal bundles this file and runs it in a sandbox.

import { proxyActivities, proxySinks } from "@temporalio/workflow";

const { trivial } = proxyActivities({ startToCloseTimeout: "1 minute" });
const { ended } = proxySinks();

export async function steps(count) {
  for (let index = 0; index < count; index += 1) await trivial(index);
  return count;
}

export async function job(index) {
  ended.note(index);
  return index;
}
