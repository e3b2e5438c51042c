// Site: what the header shows around every page: store, caller, notices, the number of open promises.

import { computed, effect, signal } from "@preact/signals";
import type { Role, SiteBody } from "../../src/contract/site.ts";
import { get, Problem } from "./api.ts";
import { setServerTime } from "./clock.ts";
import { live, onChange } from "./live.ts";

const ROLES: readonly Role[] = ["viewer", "reader", "approver", "operator", "admin"];

export const site = signal<SiteBody | undefined>(undefined);
/** Why the server refuses this caller: no token, or a token that expired. */
export const refusal = signal<Problem | undefined>(undefined);
export const role = computed<Role>(() => site.value?.caller.role ?? "viewer");

/** Whether the caller has the role, or one that includes it. */
export function can(needed: Role): boolean {
  return ROLES.indexOf(role.value) >= ROLES.indexOf(needed);
}

export async function loadSite(): Promise<void> {
  try {
    site.value = await get<SiteBody>("/v1/site");
    refusal.value = undefined;
    setServerTime(site.value.now);
  } catch (thrown) {
    if (thrown instanceof Problem && (thrown.status === 401 || thrown.status === 403)) refusal.value = thrown;
  }
}

/** Reads the site now and whenever promises open or close, at most once per second. */
export function startSite(): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const soon = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      void loadSite();
    }, 1000);
  };
  onChange((event) => {
    if (event.kind === "promise" || event.kind === "reset" || event.kind === "resumed") soon();
  });
  effect(() => {
    const { state, problem } = live.value;
    // A server that asks for a token does answer: the page asks the person to sign in, and is not stale.
    if (state === "stale" && problem?.status === 401) refusal.value = problem;
    if (state === "live" && (site.peek() === undefined || refusal.peek() !== undefined)) void loadSite();
  });
  void loadSite();
}
