// Codec: the text form of every payload. Does not own bytes, encryption, compression or storage.
//
// The text is canonical JSON (RFC 8785). A value that JSON lacks is an object tagged with the key "$":
//
//   bigint     {"$":"bigint","v":"123"}            bytes      {"$":"bytes","v":"<base64>"}
//   Date       {"$":"date","v":0}, v null: invalid undefined  {"$":"undefined"}
//   Map        {"$":"map","v":[[key,value],…]}     -0, NaN, … {"$":"number","v":"-0"}
//   Set        {"$":"set","v":[…]}                 Error      {"$":"error","v":{"message":…,"name":…,…}}
//
// codec.C1. Equal values have equal text: encode(decode(encode(x))) === encode(x).
// codec.C2. The text is unambiguous: an ordinary key made only of `$` has one more `$` in the text than in memory.
// codec.C3. A value that would not decode to itself is refused, with its path. The one exception is inside an Error: a
//   failure must always be recordable, so its text is made well-formed, and members that are not data (a request, a
//   socket, a cycle) are omitted. A stack is never recorded: it differs between machines.
// codec.C4. encode runs no code of the value: no toJSON, no getter.
// codec.C5. decode creates plain data and a fixed set of errors. It never creates an instance of a class that the text
//   names, and never writes to a prototype.
// codec.C6. Depth is bounded in both directions, so that no payload can overflow the stack.

export { encode, canonicalJson, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_DEPTH, type PayloadLimits } from "./encode.ts";
export { decode } from "./decode.ts";
