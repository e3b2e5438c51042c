// Definition: a workflow, a graph or a flow, with the types of its input, output, ports and state.

/**
 * The kinds of definitions.
 *
 * @example
 * ```ts
 * import { createEngine, DefinitionKind } from "reprise";
 * await using engine = await createEngine({ store: "sqlite::memory:", definitions: [] });
 * for await (const run of engine.list()) if (run.kind === DefinitionKind.graph) console.log(run.id);
 * ```
 */
export const DefinitionKind = { workflow: "workflow", graph: "graph", flow: "flow" } as const;
/** The kind of a definition. */
export type DefinitionKind = (typeof DefinitionKind)[keyof typeof DefinitionKind];

/** A workflow, a graph or a flow: what `start`, `child` and `createEngine` accept. */
export interface Definition<Name extends string = string, Input = any, Output = any, Ports = any, State = any> {
  readonly kind: DefinitionKind;
  readonly name: Name;
  readonly "~types"?: { input: (value: Input) => void; output: Output; ports: Ports; state: State };
}

/** The input of a definition or task. */
export type InputOf<D> = D extends { readonly "~types"?: { input: (value: infer I) => void } } ? I : never;
/** The output of a definition or task. */
export type OutputOf<D> = D extends { readonly "~types"?: { output: infer O } } ? O : never;
/** The state of a graph. */
export type StateOf<D> = D extends { readonly "~types"?: { state: infer S } } ? S : never;
export type PortsOf<D> = D extends { readonly "~types"?: { ports: infer M } } ? M : never;

/** The arguments of a call: a `void` input may be omitted. */
export type Args<Input, Options> = [Input] extends [void]
  ? [input?: undefined, options?: Options]
  : [input: Input, options?: Options];

export type Awaitable<T> = T | Promise<T>;

/** Refuses values that a journal cannot record at compile time. */
export type Data<T> = T extends ((...args: never) => unknown) | symbol | { json(): unknown } | AsyncIterable<unknown>
  ? "not data: read it inside the function and return the value"
  : unknown;
