// Sized response: a response whose length is known and sent. A client then sees that an answer was cut, and can show its progress;
// without a length, HTTP/1.1 sends chunks.

/** A response with a body of known size. */
export function sizedResponse(body: string | Uint8Array<ArrayBuffer>, init: ResponseInit = {}): Response {
  const headers = new Headers(init.headers);
  const length = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  headers.set("content-length", String(length));
  return new Response(body, { ...init, headers });
}

/** As `Response.json`, with its length. */
export function jsonResponse(value: unknown, init: ResponseInit = {}): Response {
  const headers = new Headers(init.headers);
  headers.set("content-type", "application/json");
  return sizedResponse(`${JSON.stringify(value)}\n`, { ...init, headers });
}
