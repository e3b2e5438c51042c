// Codec: the one way in which values become stored text and values again.
//
// Owns: the text form of every payload. Does not own: bytes, encryption, compression, where the text is kept.
//
// The text is canonical JSON (RFC 8785). What JSON cannot say is an object tagged with the key "$":
//
//   bigint     {"$":"bigint","v":"123"}            bytes      {"$":"bytes","v":"<base64>"}
//   Date       {"$":"date","v":0}, v null: invalid undefined  {"$":"undefined"}
//   Map        {"$":"map","v":[[key,value],…]}     -0, NaN, … {"$":"number","v":"-0"}
//   Set        {"$":"set","v":[…]}                 Error      {"$":"error","v":{"message":…,"name":…,…}}
//
// C1. Equal values have equal text: encode(decode(encode(x))) === encode(x).
// C2. Nothing is ambiguous: an ordinary key made only of `$` carries one more `$` in the text than in memory.
// C3. What cannot come back as it was is refused with the path to it, never mangled. The one exception is inside an
//     Error: a failure must always be recordable, so its text is made well-formed, and members that are not data (a
//     request, a socket, a cycle) are left out. A stack is never recorded: it differs between machines.
// C4. encode runs no code of the value: no toJSON, no getter.
// C5. decode makes plain data and a fixed set of errors, never an instance of a class named by the text, and never
//     writes to a prototype.
// C6. Depth is bounded both ways, so that no payload can overflow the stack.

export { encode, canonicalJson, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, type PayloadLimits } from "./encode.ts";
export { decode } from "./decode.ts";
