// Inputs: the values of a ready node, from the arrivals at it.

import { decode, RepriseError } from "../base/index.ts";
import {
  errorOf,
  type ArrivalKind,
  type FailureData,
  type NodeCompletedData,
  type NodeInput,
  type RunStartedData,
} from "../kernel/index.ts";
import type { FlowBody } from "./definition.ts";
import { SKIPPED, type ValuesByNode } from "./evaluate.ts";

/** An arrival with the entry that caused it. An entry that several arrivals name is decoded once. */
export interface DecodedArrival {
  readonly target: string;
  readonly edge: string;
  readonly index: number;
  readonly kind: ArrivalKind;
  readonly data: ArrivalData;
}

/** The data of the entry that caused an arrival: of the run's start, or of the end of a node. */
export type ArrivalData = NodeCompletedData & Partial<RunStartedData> & Partial<FailureData>;

export function decodeInputs(inputs: readonly NodeInput[]): readonly DecodedArrival[] {
  const decoded = new Map<number, ArrivalData>();
  return inputs.map(({ target, edge, index, kind, seq, data }) => {
    let value = decoded.get(seq);
    if (value === undefined) decoded.set(seq, (value = decode(data) as ArrivalData));
    return { target, edge, index, kind, data: value };
  });
}

/** The value of every edge into `target`: SKIPPED for a skip, and for a guard the side that was taken. */
export function valuesFrom(body: FlowBody, target: string, arrived: readonly DecodedArrival[]): ValuesByNode {
  const { regions, nodes } = body;
  const known = new Map<string, unknown>();
  for (const arrival of arrived) {
    if (arrival.target !== target) continue;
    const { edge, kind, data } = arrival;
    const source = nodes.get(edge);
    if (source?.work.kind === "when") {
      // The arrival is a value if this node's side was taken; the node knows which side that is.
      const side = nodes.get(target)?.guard?.side;
      known.set(edge, kind === "skip" ? SKIPPED : side);
    } else if (kind === "skip") known.set(edge, SKIPPED);
    else if (regions.get(edge)?.region.head.work.kind === "barrier")
      known.set(edge, spreadListFrom(body, edge, arrived));
    else known.set(edge, valueInEntry(edge, data));
  }
  return known;
}

/** The value of a node in an entry: the head's result, or a value derived from it. */
export function valueInEntry(node: string, { definition, input, kept, result }: ArrivalData): unknown {
  if (node === "input" && definition !== undefined) return input;
  return kept !== undefined && Object.hasOwn(kept, node) ? kept[node] : result;
}

/** The list of a barrier, by index, with `settle` as settled results; SKIPPED if its spread was skipped. */
export function spreadListFrom({ nodes }: FlowBody, barrier: string, arrived: readonly DecodedArrival[]): unknown {
  const work = nodes.get(barrier)?.work;
  const settle = work?.kind === "barrier" && work.settle;
  const items = arrived.filter(({ target }) => target === barrier);
  if (items[0]?.kind === "skip") return SKIPPED;
  const list = Array.from<unknown>({ length: items.length });
  for (const { index, kind, data } of items) {
    if (index < 0 || index >= items.length)
      throw new RepriseError("STORE_CORRUPT", `The items of ${barrier} have a gap. Run \`reprise doctor\`.`);
    const value = kind === "failure" ? errorOf(data) : data.result;
    if (!settle) list[index] = value;
    else list[index] = kind === "failure" ? { status: "rejected", reason: value } : { status: "fulfilled", value };
  }
  return list;
}
