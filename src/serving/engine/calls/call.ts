/** What a call is: its path, and a function from a request's body to JSON. */

import type { ParsedRequest, RequestPath } from "../../../engine/tinker/wire.ts";
import type { Answer } from "../../pipeline.ts";
import type { Arrival, EngineService } from "../engine-service.ts";

export interface CallContext {
  readonly service: EngineService;
  readonly arrival: Arrival;
  /** Aborts when the client is gone or the time is over. */
  readonly signal: AbortSignal;
}

/** A POST of the protocol. Throws `HttpError`, `FileError`. */
export type Call<Path extends RequestPath> = (
  body: ParsedRequest<Path>,
  context: CallContext,
) => Promise<object | RawJson>;

/** An answer that is JSON already. */
export interface RawJson {
  readonly json: string;
}

export type Calls = { readonly [Path in RequestPath]: Call<Path> };

export function jsonAnswer(value: object): Answer {
  return { body: "json" in value && typeof value.json === "string" ? value.json : JSON.stringify(value) };
}

/** What most calls answer at once beside the number of their future. */
export const pending = { status: "pending" } as const;
