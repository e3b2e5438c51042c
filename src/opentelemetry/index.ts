// reprise/opentelemetry: spans of workflows, steps, tasks and messages for the OpenTelemetry API.

export type { RepriseEvent } from "../kernel/index.ts";
