// reprise/a2a: workflows as an agent of the Agent2Agent protocol, and their runs as its tasks. No other room imports it, so the package works
// without `@a2a-js/sdk`.

export { a2a } from "./a2a.ts";
export type { A2AOptions, A2ASkill } from "./agent-card.ts";
