// Export PROV: a run as a W3C PROV document in PROV-JSON. A value is an entity, the run and each step an activity, the origin an agent.

import { isoTime, stepsOf, type ExportContext } from "./export-parts.ts";
import type { ExportedRun } from "./read-provenance.ts";

type Attributes = Record<string, string | number>;

/** Encoded, so that any id is the local part of a qualified name. */
function nameOf(kind: string, ...parts: readonly (string | number)[]): string {
  return `reprise:${[kind, ...parts].map((part) => encodeURIComponent(part)).join("/")}`;
}

/** One document; the same run gives the same text. */
export function exportProv(exported: ExportedRun, { origin, engine }: ExportContext): object {
  const { record, claim, input, output, error, checksums } = exported;
  const { id, generation, definition, kind, version, status, createdAt, endedAt } = record;
  const [run, agent] = [nameOf("run", id, generation), nameOf("origin", origin)];
  const entity: Record<string, Attributes> = {};
  const activity: Record<string, Attributes> = {};
  const relations = new Relations();
  const value = (key: string): string => {
    const checksum = checksums.get(key);
    const name = nameOf("value", key);
    entity[name] ??= { "prov:type": "reprise:Value", ...(checksum !== undefined && { "reprise:sha256": checksum }) };
    return name;
  };
  activity[run] = {
    "prov:startTime": isoTime(createdAt),
    ...(endedAt !== undefined && { "prov:endTime": isoTime(endedAt) }),
    "prov:type": "reprise:Run",
    "prov:label": definition,
    "reprise:kind": kind,
    "reprise:version": version,
    "reprise:status": status,
  };
  const claimed = nameOf("claim", claim.key);
  entity[claimed] = { "prov:type": "reprise:Claim" };
  relations.add("wasAssociatedWith", { "prov:activity": run, "prov:agent": agent });
  relations.add("wasGeneratedBy", { "prov:entity": claimed, "prov:activity": run });
  if (input !== undefined) relations.add("used", { "prov:activity": run, "prov:entity": value(input) });
  for (const key of [output, error])
    if (key !== undefined) relations.add("wasGeneratedBy", { "prov:entity": value(key), "prov:activity": run });
  for (const { step, command, used, generated } of stepsOf(exported)) {
    const at = nameOf("step", id, generation, command);
    activity[at] = {
      "prov:type": "reprise:Step",
      "prov:label": step.name ?? step.command,
      "reprise:command": step.command,
      "reprise:kind": step.kind,
    };
    relations.add("wasInformedBy", { "prov:informed": at, "prov:informant": run });
    for (const key of used) relations.add("used", { "prov:activity": at, "prov:entity": value(key) });
    for (const key of generated) relations.add("wasGeneratedBy", { "prov:entity": value(key), "prov:activity": at });
  }
  return {
    prefix: { reprise: "urn:reprise:" },
    entity,
    activity,
    agent: { [agent]: { "prov:type": "prov:SoftwareAgent", "prov:label": origin, "reprise:engine": engine } },
    ...relations.all,
  };
}

/** Relations without a name of their own are numbered. */
class Relations {
  readonly all: Record<string, Record<string, Attributes>> = {};

  add(kind: string, attributes: Attributes): void {
    const some = (this.all[kind] ??= {});
    some[`_:${kind}${Object.keys(some).length}`] = attributes;
  }
}
