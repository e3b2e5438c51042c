// reprise/opentelemetry: spans of workflows, steps, tasks and messages for the OpenTelemetry API. This is the only room that
// imports the API, and no other room imports this one.

export { openTelemetry, type OpenTelemetryOptions } from "./open-telemetry.ts";
