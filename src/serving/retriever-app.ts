/**
 * A retriever over HTTP, in every dialect that training scripts speak (`dialects.ts`), as a Hono app: the function
 * from request to response that a socket, a test or another app can call. One port, no state between requests.
 */
import { Hono } from "hono";
import type { Retriever } from "../retrieval/retriever.ts";
import { apiKeyCheck } from "./api-key.ts";
import { HttpError } from "./http-error.ts";
import { createPipeline, errorResponse, ourFailure } from "./pipeline.ts";
import { type Route, routesOf } from "./routes.ts";
import { createService, type RetrieverAppOptions } from "./service.ts";

export type { RetrieverAppOptions } from "./service.ts";

/** An app whose `request` answers without a socket and whose `fetch` is what `startServer` takes. */
export function createRetrieverApp(retriever: Retriever, options: RetrieverAppOptions): Hono {
  const service = createService(retriever, options);
  const pipeline = createPipeline({
    requestMs: service.limits.requestMs,
    metrics: service.metrics,
    now: options.now,
    checkKey: options.apiKey === undefined ? undefined : apiKeyCheck(options.apiKey),
    stopping: options.stopping,
    onFailure: options.onFailure ?? (() => undefined),
  });
  const routes = routesOf(service);
  const app = new Hono();
  for (const { method, path, isOpen = false, work } of routes)
    app.on(method, path, ({ req }) =>
      pipeline(req.raw, { path, isOpen }, (request, signal) =>
        work({ request, signal, parameters: { ...req.query(), ...req.param() } }),
      ),
    );
  for (const { method, path } of routes)
    app.all(path, ({ req }) => errorResponse(wrongMethod(req.method, method)));
  app.onError((error) => {
    options.onFailure?.(error);
    return ourFailure();
  });
  return app.notFound(({ req }) => errorResponse(unknownPath(req.path, routes)));
}

function wrongMethod(got: string, allowed: Route["method"]): HttpError {
  const advice = `send ${allowed}`;
  return new HttpError(405, { expected: allowed, got: got.slice(0, 20), advice }, { allow: allowed });
}

function unknownPath(path: string, routes: readonly Route[]): HttpError {
  return new HttpError(404, {
    expected: `one of ${routes.map((route) => route.path).join(", ")}`,
    got: JSON.stringify(path.slice(0, 100)),
    advice: "see /openapi.yaml",
  });
}
