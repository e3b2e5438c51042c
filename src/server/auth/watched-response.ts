// Watched response: a stream that ends when its caller may no longer read it (server-access.A5).

/** The same response, whose body ends when the signal aborts. `ended` is called once: at its end, failure or cancellation. */
export function watchedResponse(response: Response, signal: AbortSignal, ended: () => void): Response {
  if (response.body === null || signal.aborted) {
    ended();
    return signal.aborted ? new Response(null, { status: 204 }) : response;
  }
  const reader = response.body.getReader();
  const revoked = new Promise<{ readonly done: true; readonly value: undefined }>((resolve) => {
    signal.addEventListener("abort", () => resolve({ done: true, value: undefined }), { once: true });
  });
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await Promise.race([reader.read(), revoked]);
          if (!done) return controller.enqueue(value);
          controller.close();
          // Without waiting: a source that never confirms must not keep the stream open.
          void reader.cancel().catch(() => undefined);
        } catch (error) {
          controller.error(error);
        }
        ended();
      },
      async cancel(reason) {
        ended();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}
