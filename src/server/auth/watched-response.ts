// Watched response: a stream that ends when its caller may no longer read it (server-access.A5).

/** The same response, whose body ends when the signal aborts. `ended` is called once: at its end, failure or cancellation. */
export function watchedResponse(response: Response, signal: AbortSignal, ended: () => void): Response {
  if (response.body === null || signal.aborted) {
    ended();
    return signal.aborted ? new Response(null, { status: 204 }) : response;
  }
  const reader = response.body.getReader();
  let onRevoked = (): void => undefined;
  const end = (): void => {
    // A listener, not a race with a promise of the abort: that would keep every chunk until the end.
    signal.removeEventListener("abort", onRevoked);
    ended();
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start(controller) {
        onRevoked = (): void => {
          controller.close();
          // Without waiting: a source that never confirms must not keep the stream open.
          void reader.cancel().catch(() => undefined);
          end();
        };
        signal.addEventListener("abort", onRevoked, { once: true });
      },
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (signal.aborted) return;
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        end();
      },
      async cancel(reason) {
        end();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, response);
}
