/**
 * Waiting for the results of calls that take time. Servers differ: one holds the question and then says 408, one says
 * `try_again`, one forgets a result once it was read. A question that stays open is asked again at once, one that failed
 * after a growing wait. A result is read once and kept.
 */
import type { EngineError } from "../../errors.ts";
import type { HttpReply } from "../../shared/http.ts";
import type { Connection } from "./connection.ts";
import { detailOf, judge, type Trouble } from "./trouble.ts";
import type { Acknowledged } from "./wire.ts";

/** A poll that came back sooner than this was not held; asking at once would flood the server. */
const heldMs = 200;
const shortestPauseMs = 50;
const longestPauseMs = 2_000;

export interface Waiting {
  /** The path of the call whose result it is, for messages. */
  readonly path: string;
  readonly requestId: string;
  readonly signal?: AbortSignal | undefined;
}

/** The result that an acknowledgement has with it, or else promises. Throws as `retrieve`. */
export async function settle(
  connection: Connection,
  { path, acknowledged, signal }: Omit<Waiting, "requestId"> & { readonly acknowledged: Acknowledged },
): Promise<unknown> {
  const { answer, request_id: requestId } = acknowledged;
  if (answer === undefined) return await retrieve(connection, { path, requestId, signal });
  const read = readResult(answer);
  if (read.state === "done") return read.result;
  if (read.state === "failed") throw connection.error({ path }, read.what, read.kind);
  return await retrieve(connection, { path, requestId, signal });
}

/** The result of a call. Throws `EngineError` (`gone` where the server does not have it any more), or the signal's reason. */
export async function retrieve(connection: Connection, waiting: Waiting): Promise<unknown> {
  const { world, options, profile } = connection;
  const started = world.now();
  let pauses = 0;
  let failures = 0;
  let failing: number | undefined;
  let allowMetadata = true;
  for (;;) {
    const { path, requestId, signal } = waiting;
    const asked = world.now();
    const body = { request_id: requestId, ...(!allowMetadata && { allow_metadata_only: false }) };
    const call = {
      path: "retrieve_future",
      body,
      repeat: "always",
      timeoutMs: profile.pollTimeoutMs,
      signal,
    } as const;
    const outcome = await connection.attempt(call);
    const answer = readAnswer(outcome);
    if (answer.state === "done") return answer.result;
    if (world.now() - started > options.resultTimeoutMs)
      throw connection.error(
        waiting,
        `no result within ${options.resultTimeoutMs / 1000} s (engine.resultTimeoutMs)`,
        "slow",
      );
    if (answer.state === "failed") throw connection.error(waiting, answer.what, answer.kind);
    connection.count("polls");
    if (answer.state === "metadata") {
      allowMetadata = false;
      continue;
    }
    if (answer.state === "open") {
      failures = 0;
      failing = undefined;
      pauses = world.now() - asked < heldMs ? pauses + 1 : 0;
      if (pauses > 0)
        await world.sleep(Math.min(longestPauseMs, shortestPauseMs * 2 ** (pauses - 1)), signal);
      continue;
    }
    requireReadable(connection, { path, trouble: answer.trouble });
    failing ??= asked;
    await connection.wait(
      { ...call, path },
      { attempt: failures++, started: failing, trouble: answer.trouble },
    );
  }
}

/** Where results are read once only, a reply that broke off took the result with it. */
function requireReadable(
  connection: Connection,
  { path, trouble }: { readonly path: string; readonly trouble: Trouble },
): void {
  if (!connection.profile.popsResults || !trouble.isUnknown || trouble.kind === "failed") return;
  throw connection.error(
    { path },
    `${trouble.what}, and ${connection.profile.title} gives a result only once`,
    "lost",
  );
}

type Answer =
  | { readonly state: "done"; readonly result: unknown }
  | { readonly state: "open" }
  | { readonly state: "metadata" }
  | { readonly state: "failed"; readonly what: string; readonly kind: EngineError["kind"] }
  | { readonly state: "trouble"; readonly trouble: Trouble };

function readAnswer(outcome: Parameters<typeof judge>[0]): Answer {
  if ("failure" in outcome && outcome.isLost === true && /^no answer within/.test(outcome.failure))
    return { state: "open" };
  if (!("failure" in outcome) && outcome.status === 408) return { state: "open" };
  const judged = judge(outcome);
  if (!("json" in judged))
    return judged.passes ? { state: "trouble", trouble: judged } : failure(outcome as HttpReply, judged);
  return readResult(judged.json);
}

/**
 * What the JSON of a successful answer says: `type: "try_again"` where it is not ready, `error` with a `category` where it failed
 * for good, or else the result.
 */
function readResult(result: unknown): Answer {
  // By hand, since thousands come a second, and a schema that does not fit costs more than the rest of a turn.
  const told = (result ?? {}) as Readonly<Record<"type" | "status" | "error" | "category", unknown>>;
  if (told.type === "try_again") return { state: "open" };
  if (told.status === "complete_metadata") return { state: "metadata" };
  if (typeof told.error !== "string") return { state: "done", result };
  return {
    state: "failed",
    what: `failed: ${told.error.slice(0, 500)}`,
    kind: told.category === "server" ? "failed" : "rejected",
  };
}

/** SkyRL says 400 with a `detail` for a call that failed. */
function failure(reply: HttpReply, trouble: Trouble): Answer {
  const detail = detailOf(reply.text);
  const what =
    reply.status === 400 && detail !== undefined ? `failed: ${detail.slice(0, 500)}` : trouble.what;
  return { state: "failed", what, kind: trouble.kind };
}
