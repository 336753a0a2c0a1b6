/** What is wrong with an answer of a Tinker server, or with its absence, and whether the request may have been carried out. */
import type { EngineErrorKind } from "../../errors.ts";
import { describeStatus, excerpt, type Failure, type HttpReply } from "../../shared/http.ts";

/** The server said that it did not take the request. */
const refused = new Set([425, 429]);
/** The server, or a proxy before it, is away or overloaded; whether it took the request is not known. */
const away = new Set([408, 502, 503, 504]);
/** What the server will not do however often it is asked, such as a POST to a server of files. */
const notImplemented = 501;

export interface Trouble {
  readonly what: string;
  readonly kind: EngineErrorKind;
  /** A cause that may pass. */
  readonly passes: boolean;
  /** Whether the request was carried out is not known. */
  readonly isUnknown: boolean;
  /** The server is away or busy, which is waited out; else a few attempts are enough. */
  readonly isAway: boolean;
  readonly waitMs?: number | undefined;
}

/** The JSON of a success, or what is wrong with an outcome. */
export function judge(outcome: HttpReply | Failure): { readonly json: unknown } | Trouble {
  if ("failure" in outcome)
    return {
      what: outcome.failure,
      kind: "unreachable",
      passes: true,
      isUnknown: outcome.isLost === true,
      isAway: true,
    };
  const { status, text, waitMs } = outcome;
  if (status >= 200 && status < 300) return readJson(text);
  const passing = { what: `got ${describeStatus(outcome)}`, passes: true, waitMs };
  if (refused.has(status)) return { ...passing, kind: "unreachable", isUnknown: false, isAway: true };
  if (away.has(status)) return { ...passing, kind: "unreachable", isUnknown: true, isAway: true };
  if (status >= 500 && status !== notImplemented)
    return { ...passing, kind: "failed", isUnknown: true, isAway: false };
  const kind = kinds[status] ?? "rejected";
  return {
    ...passing,
    what: `got ${statusText(outcome)}`,
    kind,
    passes: false,
    isUnknown: false,
    isAway: false,
  };
}

const kinds: Readonly<Record<number, EngineErrorKind>> = {
  401: "unauthorized",
  402: "unauthorized",
  403: "unauthorized",
  404: "gone",
  409: "conflict",
  410: "gone",
};

/** A reply that broke off is none, nor is one with NaN, which JSON has no number for. */
function readJson(text: string): { readonly json: unknown } | Trouble {
  try {
    return { json: JSON.parse(text) };
  } catch {
    const holdsNaN = /\bNaN\b|\bInfinity\b/.test(text);
    return {
      what: holdsNaN
        ? `the answer holds a number that is none (${excerpt(text, 80)})`
        : `expected JSON, got ${excerpt(text)}`,
      kind: "malformed",
      passes: !holdsNaN,
      isUnknown: true,
      isAway: false,
    };
  }
}

/** A status with what the server says of it: a `detail` of FastAPI, or the start of its text. */
function statusText(reply: HttpReply): string {
  const detail = detailOf(reply.text);
  const advice = reply.status === 402 ? " (the account is paused; look at its billing)" : "";
  return detail === undefined ? describeStatus(reply) : `${reply.status}${advice}: ${detail.slice(0, 500)}`;
}

/** What a refusal says: a text, or the first complaints about a body with their places. */
export function detailOf(text: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { detail, error } = (parsed ?? {}) as { readonly detail?: unknown; readonly error?: unknown };
  if (typeof detail === "string") return detail;
  if (typeof error === "string") return error;
  if (!Array.isArray(detail)) return undefined;
  const complaints = detail.slice(0, 3).map((one: { readonly loc?: unknown; readonly msg?: unknown }) => {
    const place = Array.isArray(one?.loc) ? one.loc.join(".") : "";
    return `${place}: ${String(one?.msg)}`;
  });
  return complaints.join("; ");
}
