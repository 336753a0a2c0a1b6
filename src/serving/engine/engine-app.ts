/**
 * The Tinker protocol over HTTP, as a Hono app over an `EngineService`: keys, limits, deadlines and errors in words. Errors
 * have FastAPI's form, `{"detail": …}`, which the official client reads.
 */
import { Hono } from "hono";
import { apiPrefix, type RequestPath, requestSchemas } from "../../engine/tinker/wire.ts";
import { apiKeyCheck } from "../api-key.ts";
import { HttpError } from "../http-error.ts";
import { type Answer, createPipeline } from "../pipeline.ts";
import { ByteBudget, readBody } from "../read-body.ts";
import { type CallContext, type Calls, jsonAnswer } from "./calls/call.ts";
import { checkpointCalls } from "./calls/checkpoint-calls.ts";
import { samplingCalls } from "./calls/sampling-calls.ts";
import { sessionCalls } from "./calls/session-calls.ts";
import { trainingCalls } from "./calls/training-calls.ts";
import type { EngineService } from "./engine-service.ts";
import { preferredWaitMs, withOutcome } from "./immediate-outcome.ts";
import { bodyIssues, InvalidBody } from "./invalid-body.ts";
import { restRoutes } from "./rest-routes.ts";

export interface EngineAppOptions {
  /** Asked for by every route but `healthz`. */
  readonly apiKey?: string;
}

const calls: Calls = { ...sessionCalls, ...trainingCalls, ...samplingCalls, ...checkpointCalls };

/** An app whose `request` answers without a socket and whose `fetch` is what `startServer` takes. */
export function createEngineApp(service: EngineService, { apiKey }: EngineAppOptions = {}): Hono {
  const { limits, now, stopping, onFailure } = service.parts;
  const pipeline = createPipeline({
    requestMs: limits.requestMs,
    metrics: { record: () => undefined },
    now,
    checkKey: apiKey === undefined ? undefined : apiKeyCheck(apiKey),
    stopping,
    onFailure,
    writeError,
  });
  const budget = new ByteBudget(limits.pendingBytes);
  const app = new Hono();
  for (const path of Object.keys(calls) as RequestPath[])
    app.post(`${apiPrefix}/${path}`, ({ req }) =>
      pipeline(req.raw, { path }, (request, signal) =>
        answerCall(path, request, { service, budget, signal }),
      ),
    );
  for (const { method, path, isOpen = false, work } of restRoutes)
    app.on(method, `${apiPrefix}/${path}`, ({ req }) =>
      pipeline(req.raw, { path, isOpen }, async () => {
        const answer = await work({
          service,
          origin: new URL(req.url).origin,
          parameters: { ...req.query(), ...req.param() },
        });
        return "body" in answer ? (answer as Answer) : jsonAnswer(answer);
      }),
    );
  const known = new Set([...Object.keys(calls), ...restRoutes.map(({ path }) => path)]);
  for (const path of known)
    app.all(`${apiPrefix}/${path}`, () => Response.json({ detail: "Method Not Allowed" }, { status: 405 }));
  app.onError((error) => {
    onFailure(error);
    return Response.json({ detail: "the server failed, and has logged why" }, { status: 500 });
  });
  return app.notFound(() => Response.json({ detail: "Not Found" }, { status: 404 }));
}

interface CallSetting {
  readonly service: EngineService;
  readonly budget: ByteBudget;
  readonly signal: AbortSignal;
}

async function answerCall<Path extends RequestPath>(
  path: Path,
  request: Request,
  { service, budget, signal }: CallSetting,
): Promise<Answer> {
  requireJson(request.headers);
  const most = service.parts.limits.bodyBytes;
  const { body, bytes, hash = "" } = await readBody(request, { most, budget, signal, wantsHash: true });
  let acknowledged: object;
  try {
    const parsed = requestSchemas[path].safeParse(body);
    if (!parsed.success) {
      noteRefused(service, body);
      throw bodyIssues(parsed.error);
    }
    const idempotencyKey = request.headers.get("x-idempotency-key") ?? undefined;
    const context: CallContext = { service, signal, arrival: { kind: path, hash, bytes, idempotencyKey } };
    // The table has for each path the call that takes what its schema gives, which types cannot follow.
    const call = calls[path] as (body: unknown, context: CallContext) => Promise<object>;
    acknowledged = await call(parsed.data, context);
  } finally {
    budget.giveBack(bytes);
  }
  const waitMs = path === "retrieve_future" ? 0 : preferredWaitMs(request.headers);
  if (waitMs === 0) return jsonAnswer(acknowledged);
  return jsonAnswer(await withOutcome(acknowledged, { service, signal, waitMs }));
}

/** Throws `HttpError` (415) for the other dialect of the protocol. */
function requireJson(headers: Headers): void {
  if (!headers.get("content-type")?.includes("protobuf")) return;
  throw new HttpError(415, {
    expected: "JSON, the only dialect of this server",
    got: "protobuf",
    advice: "use a client that sends JSON, such as tinker==0.24.1",
  });
}

/** A refused request has used its number, which others of its model need not wait for. */
function noteRefused(service: EngineService, { model_id, seq_id }: Readonly<Record<string, unknown>>): void {
  if (typeof model_id !== "string" || !Number.isSafeInteger(seq_id)) return;
  service.models.get(model_id)?.queue.passed(seq_id as number);
}

function writeError(error: HttpError): Response {
  const detail = error instanceof InvalidBody ? error.issues : error.message;
  return Response.json({ detail }, { status: error.status, headers: error.headers });
}
