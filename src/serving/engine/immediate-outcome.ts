/**
 * An acknowledgement that has the outcome with it, for clients that would rather wait than ask again (`Prefer: wait=10`,
 * RFC 7240, 4.3): one exchange instead of two, where thousands of short turns are sampled a second. The future is there as
 * ever, so that a lost answer is asked for as ever.
 */
import type { RawJson } from "./calls/call.ts";
import type { EngineService } from "./engine-service.ts";

/** Milliseconds that a client asks to wait; 0: it does not. */
export function preferredWaitMs(headers: Headers): number {
  const seconds = /(?:^|[,;\s])wait\s*=\s*"?(\d{1,6})\b/i.exec(headers.get("prefer") ?? "")?.[1];
  return seconds === undefined ? 0 : Number(seconds) * 1000;
}

/** `acknowledged` with the outcome as `answer`, where it promises one that is there in time; else as it is. */
export async function withOutcome(
  acknowledged: object,
  {
    service,
    signal,
    waitMs,
  }: { readonly service: EngineService; readonly signal: AbortSignal; readonly waitMs: number },
): Promise<object | RawJson> {
  const id = (acknowledged as { readonly request_id?: unknown }).request_id;
  if (typeof id !== "string") return acknowledged;
  const { limits, stopping } = service.parts;
  const holdMs = Math.min(waitMs, limits.holdMs);
  const answer = await service.futures.answer(id, { holdMs, client: signal, stopping });
  if (answer === undefined) return acknowledged;
  return { json: `${JSON.stringify(acknowledged).slice(0, -1)},"answer":${answer}}` };
}
