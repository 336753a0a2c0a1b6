/** Waiting for an outcome on behalf of a client. */
import { onAbort } from "../../shared/concurrency.ts";

/** How long a client is kept waiting. */
export interface Patience {
  readonly holdMs: number;
  readonly client: AbortSignal;
  /** Ends the wait early. */
  readonly stopping?: AbortSignal | undefined;
}

/** Waits for `promise` as long as the patience lasts. */
export function within(promise: Promise<void>, { holdMs, client, stopping }: Patience): Promise<void> {
  if (stopping?.aborted) return Promise.resolve();
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => (): void => {
      clearTimeout(timer);
      forgetClient();
      forgetStopping();
      settle();
    };
    const timer = setTimeout(end(resolve), holdMs);
    const forgetClient = onAbort(
      client,
      end(() => reject(client.reason)),
    );
    const forgetStopping = onAbort(stopping, end(resolve));
    promise.then(end(resolve));
  });
}
