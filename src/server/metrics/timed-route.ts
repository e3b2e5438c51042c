// Timed route: a route whose requests are measured, refused ones included.

import type { Clock } from "../../base/index.ts";
import type { HttpRoute } from "../../http/index.ts";
import { refusalOf } from "../problem.ts";
import type { ProcessMetrics } from "./process-metrics.ts";

/** `label`: the template of its path, so that there are as many labels as routes. */
export function timedRoute(route: HttpRoute, label: string, clock: Clock, metrics: ProcessMetrics): HttpRoute {
  const { method } = route;
  const measured = async <T>(work: () => T | Promise<T>, statusOf: (result: T) => number | undefined): Promise<T> => {
    const from = clock.monotonic();
    let status: number | undefined;
    try {
      const result = await work();
      status = statusOf(result);
      return result;
    } catch (error) {
      ({ status } = refusalOf(error));
      throw error;
    } finally {
      if (status !== undefined) metrics.onRequest(label, method, status, clock.monotonic() - from);
    }
  };
  return {
    ...route,
    // A request that is admitted is measured by its handler.
    admit: (request, params, url) =>
      measured(
        () => route.admit(request, params, url),
        () => undefined,
      ),
    handle: (call) =>
      measured(
        () => route.handle(call),
        ({ status }) => status,
      ),
  };
}
