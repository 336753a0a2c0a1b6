/**
 * The errors a user can act on. A model's mistake is data (a stop reason), a bug of ours is an assertion;
 * only bad input or a broken world ends up here.
 *
 * A message says what was expected, what came (value and place), and what to do next.
 */

export type ErrorCode =
  | "config"
  | "data-format"
  | "retriever"
  | "policy"
  | "engine"
  | "checkpoint"
  | "file"
  | "training"
  | "usage"
  | "interrupted";

/** Base of all errors with a stable `code`; the command line prints the message alone, without a stack. */
export class ForagerError extends Error {
  readonly code: ErrorCode;
  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** A recipe or option that cannot be used; `path` is the dotted key, such as `algorithm.groupSize`. */
export class ConfigError extends ForagerError {
  readonly path: string | undefined;
  constructor(message: string, options?: { cause?: unknown; path?: string }) {
    super("config", message, options);
    this.path = options?.path;
  }
}

/** A record of a data file that cannot be read; the message starts with `file:line: `. */
export class DataFormatError extends ForagerError {
  readonly file: string;
  readonly line: number | undefined;
  constructor(file: string, line: number | undefined, message: string, options?: { cause?: unknown }) {
    super("data-format", `${file}${line === undefined ? "" : `:${line}`}: ${message}`, options);
    this.file = file;
    this.line = line;
  }
}

/** A retriever that did not answer, or answered wrongly. */
export class RetrieverError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("retriever", message, options);
  }
}

/** A policy (model) that could not be asked. */
export class PolicyError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("policy", message, options);
  }
}

/**
 * What went wrong with an engine elsewhere, for who decides by it: `rejected` the server refuses the request; `unauthorized`
 * key or account; `conflict` a number or name was used for something else; `gone` the server does not know the session,
 * model or result any more; `unreachable` no answer for too long; `failed` the server says that it failed, or computing on
 * this machine did; `lost` nobody knows whether a request was carried out, and repeating it could train twice; `malformed`
 * an answer of another form, numbers that are none among it; `slow` a result that did not come in time; `stale` the weights
 * moved on; `unsupported` this engine cannot do it.
 */
export type EngineErrorKind =
  | "rejected"
  | "unauthorized"
  | "conflict"
  | "gone"
  | "unreachable"
  | "failed"
  | "lost"
  | "malformed"
  | "slow"
  | "stale"
  | "unsupported";

/** A trainable model that cannot do what was asked: an unsupported setting, a shape, not enough memory, a server elsewhere. */
export class EngineError extends ForagerError {
  readonly kind: EngineErrorKind;
  constructor(message: string, options?: { cause?: unknown; kind?: EngineErrorKind }) {
    super("engine", message, options);
    this.kind = options?.kind ?? "unsupported";
  }
}

/** A checkpoint that is missing, damaged, or belongs to another model. */
export class CheckpointError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("checkpoint", message, options);
  }
}

/** A file or folder that is missing, exists already, or cannot be written. */
export class FileError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("file", message, options);
  }
}

/** A training that went wrong by itself: a collapse, a loss that is not a number. */
export class TrainingError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("training", message, options);
  }
}

/** A command line that cannot be understood (exit code 2). */
export class UsageError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("usage", message, options);
  }
}

/** Work stopped on request after its state was saved (exit code 130). */
export class InterruptedError extends ForagerError {
  constructor(message: string, options?: { cause?: unknown }) {
    super("interrupted", message, options);
  }
}

/** States an invariant of our own code; a failure is a bug in Forager, never the user's fault. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`Assertion failed: ${message}`);
}
