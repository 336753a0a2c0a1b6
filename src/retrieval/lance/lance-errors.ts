/**
 * What LanceDB says when it fails, in one line that can be acted on. Its messages carry wrappers, places in its source and the
 * chain of their causes, which repeats them; an object store adds its own reply as XML. The known causes get advice: the words
 * of LanceDB 0.31 and of the `object_store` library below it.
 */
import { ForagerError, RetrieverError } from "../../errors.ts";

const MOST_CHARACTERS = 300;
const DAMAGED =
  "the table is damaged: files are missing or not as they were written; build it again at another place";

/** A cause and what to do about it; the first that fits counts. */
const advices: readonly (readonly [RegExp, string])[] = [
  [/NoSuchBucket/, "there is no such bucket; check its name, and AWS_ENDPOINT or storage.endpoint"],
  [/NoSuchKey|Object at location [\s\S]* not found/, DAMAGED],
  [
    /InvalidAccessKeyId|SignatureDoesNotMatch|AccessDenied|ExpiredToken|InvalidToken|40[13] (Forbidden|Unauthorized)/,
    "the keys are wrong or without rights; check those of the environment (for s3:// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY), or the variables that storage names",
  ],
  [
    /AWS credentials|CredentialsNotLoaded|credential provider/,
    "no keys were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name variables in storage",
  ],
  [
    /BadScheme|HTTP error: builder error/,
    "the endpoint is http://, over which keys and passages are readable; set AWS_ALLOW_HTTP=true or storage.allowHttp",
  ],
  [/Query timeout/, "try again, or raise timeoutMs"],
  [/resolve region/, "set AWS_REGION or storage.region"],
  [
    /error sending request|ConnectError|operation timed out|Server returned|connection (closed|reset)/i,
    "the object store does not answer as it should; check that it runs, and AWS_ENDPOINT or storage.endpoint",
  ],
  [/os error 28\b|StorageFull|QuotaExceeded/, "the disk is full; free some space and run again"],
  [/os error (13|30)\b/, "the folder cannot be written; choose another, or change its rights"],
  [
    /not found|Invalid range|fill whole buffer|file size is too small|failed to decode|panicked|os error 2\b/i,
    DAMAGED,
  ],
];

/** The failure `what` as a `RetrieverError` without secrets; errors of Forager pass. */
export function lanceError(what: string, error: unknown, secrets: readonly string[]): ForagerError {
  if (error instanceof ForagerError) return error;
  const text = error instanceof Error ? error.message : String(error);
  const advice = advices.find(([cause]) => cause.test(text))?.[1];
  const message = plainMessage(withoutSecrets(text, secrets));
  return new RetrieverError(`${what}: ${message}${advice === undefined ? "" : `; ${advice}`}`);
}

function plainMessage(text: string): string {
  const reply = /<Code>([^<]*)<\/Code>\s*<Message>([^<]*)/.exec(text);
  const status = /Server returned[^:]*: (\d{3})/.exec(text)?.[1];
  if (reply !== null) return `the object store replies ${reply[1]}: ${reply[2]}`;
  if (status !== undefined) return `the object store replies with status ${status}`;
  const first = text.split("\n").find((line) => line.trim() !== "") ?? "no reason given";
  const line = first
    .replace(/\s+Caused by: .*/, "")
    .replace(/,? \/[^ ,]*\.rs:\d+:\d+/g, "")
    .replace(/Encountered internal error\. Please file a bug report at \S+ /, "")
    .replace(
      /(Failed to get next batch from stream|Query Execution error|Execution error|lance error|LanceError\(\w+\)|Cloned error): /g,
      "",
    )
    .replace(/^Generic [\w/]+ error: /, "")
    .trim();
  return line.length <= MOST_CHARACTERS ? line : `${line.slice(0, MOST_CHARACTERS)}…`;
}

/** `text` with each secret replaced by `***`. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => (secret === "" ? rest : rest.replaceAll(secret, "***")), text);
}
