/**
 * What a client is told when it cannot have what it asked for: a status and three things in words, namely what was
 * expected, what came, and what to do. `error` is a text, since the clients of rLLM and Pyserini print it. A stack
 * never leaves the server.
 */
export type ErrorStatus =
  | 400
  | 401
  | 404
  | 405
  | 408
  | 409
  | 410
  | 413
  | 415
  | 422
  | 425
  | 429
  | 499
  | 500
  | 501
  | 502
  | 503;

export interface Explanation {
  readonly expected: string;
  readonly got: string;
  /** What to do next. */
  readonly advice: string;
}

export class HttpError extends Error {
  readonly status: ErrorStatus;
  readonly explanation: Explanation;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: ErrorStatus, explanation: Explanation, headers: Readonly<Record<string, string>> = {}) {
    super(`expected ${explanation.expected}; got ${explanation.got}; ${explanation.advice}`);
    this.name = "HttpError";
    this.status = status;
    this.explanation = explanation;
    this.headers = headers;
  }
}

/** The body of an error response. */
export function errorJson(error: HttpError): string {
  return JSON.stringify({ error: error.message, status: error.status, ...error.explanation });
}

/** Nobody reads this; it is counted. */
export function clientGone(): HttpError {
  return new HttpError(499, {
    expected: "a client that waits for its answer",
    got: "a closed connection",
    advice: "wait longer",
  });
}

/** A value in a few words, so that a message cannot grow with what was sent. */
export function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) {
    const keys = Object.keys(value);
    if (keys.length === 0) return "an empty object";
    const shown = keys.slice(0, 8).map((key) => JSON.stringify(key.slice(0, 40)));
    return `an object with the keys ${shown.join(", ")}${keys.length > 8 ? ", …" : ""}`;
  }
  const text = typeof value === "string" ? JSON.stringify(value.slice(0, 60)) : String(value);
  return typeof value === "string" && value.length > 60 ? `a text of ${value.length} characters` : text;
}
