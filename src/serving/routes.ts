/** The routes of a retrieval server but for what `dialects.ts` describes: what each path answers. */
import type { Passage } from "../corpus/passage.ts";
import { dialects, readCall } from "./dialects.ts";
import { flag, textList } from "./fields.ts";
import { HttpError } from "./http-error.ts";
import { openApiDocument, openApiYaml } from "./openapi.ts";
import type { PassageLookup } from "./passage-lookup.ts";
import type { Answer } from "./pipeline.ts";
import { checkIndex, readPyseriniSearch, writeDocument, writeSearch } from "./pyserini.ts";
import { answerRerank, readRerank } from "./rerank.ts";
import type { Service } from "./service.ts";

export interface RouteCall {
  readonly request: Request;
  /** Aborts when the time is over or the client is gone. */
  readonly signal: AbortSignal;
  /** Of path and query string. */
  readonly parameters: Readonly<Record<string, string>>;
}

export interface Route {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Answers without the API key. */
  readonly isOpen?: boolean;
  readonly work: (call: RouteCall) => Promise<Answer>;
}

export function routesOf(service: Service): readonly Route[] {
  return [
    ...dialectRoutes(service),
    ...documentRoutes(service),
    ...pyseriniRoutes(service),
    ...ownRoutes(service),
  ];
}

function dialectRoutes(service: Service): readonly Route[] {
  const { limits, defaultK, retriever } = service;
  const context = { limits, defaultK, method: retriever.identity.method };
  return [...new Set(dialects.map(({ path }) => path))].map((path) => ({
    method: "POST",
    path,
    work: ({ request, signal }) =>
      service.withBody(request, signal, async (body) => {
        const call = readCall(path, body, context);
        const results = await service.retrieve(call.queries, call.k, signal);
        const out = service.writer(results.length * call.k);
        call.write(out, results);
        return { route: call.dialect, body: out.finish() };
      }),
  }));
}

function documentRoutes(service: Service): readonly Route[] {
  return [
    {
      method: "POST",
      path: "/access",
      work: ({ request, signal }) =>
        service.withBody(request, signal, async (body) => {
          const lookup = lookupOf(service);
          const urls = textList(body, "urls", service.limits.queries, "send several calls");
          const find = async (): Promise<(Passage | undefined)[]> => {
            const passages: (Passage | undefined)[] = [];
            for (const url of urls) {
              signal.throwIfAborted();
              passages.push(await lookup(url));
            }
            return passages;
          };
          const passages = await service.inTurn("store of passages", find, signal);
          const out = service.writer().raw('{"result":');
          out.list(passages, (inner, passage) => {
            if (passage === undefined) inner.raw("null");
            else inner.document(passage);
          });
          return { body: out.raw("}").finish() };
        }),
    },
    {
      method: "POST",
      path: "/rerank",
      work: ({ request, signal }) =>
        service.withBody(request, signal, async (body) => {
          const { rerank } = service.options;
          if (rerank === undefined) throw missing("a reranker", "start the server with a reranking model");
          const call = readRerank(body, service.limits);
          const answer = () => answerRerank(call, rerank, signal);
          return { body: await service.inTurn("reranker", answer, signal) };
        }),
    },
  ];
}

function pyseriniRoutes(service: Service): readonly Route[] {
  const { name, retriever, limits } = service;
  return [
    {
      method: "GET",
      path: "/v1/:index/search",
      work: async ({ signal, parameters }) => {
        checkIndex(parameters.index ?? "", name);
        const search = readPyseriniSearch(parameters, retriever.identity, limits);
        const [found = []] = await service.retrieve([search.query], search.k, signal);
        const out = service.writer();
        writeSearch(out, { index: name, search, found });
        return { route: "pyserini", body: out.finish() };
      },
    },
    {
      method: "GET",
      path: "/v1/:index/doc/:docid{.+}",
      work: async ({ signal, parameters: { index = "", docid = "", ...rest } }) => {
        checkIndex(index, name);
        const lookup = lookupOf(service);
        const parse = flag(rest, "parse", true);
        const passage = await service.inTurn("store of passages", () => lookup(docid), signal);
        if (passage === undefined) throw unknownDocument(docid);
        const out = service.writer();
        writeDocument(out, { index: name, passage, parse });
        return { route: "pyserini-doc", body: out.finish() };
      },
    },
  ];
}

function ownRoutes(service: Service): readonly Route[] {
  const { metrics, retriever, options } = service;
  const { identity } = retriever;
  const health: Route["work"] = async () => ({
    body: JSON.stringify({
      status: "healthy",
      corpus_size: options.passages,
      index_type: identity.method,
      index_loaded: true,
      retrieval_method: identity.method,
      topk: service.defaultK,
      index: service.name,
      corpusHash: identity.corpusHash,
      indexHash: identity.indexHash,
    }),
  });
  const api = openApiDocument(service);
  return [
    { method: "GET", path: "/health", isOpen: true, work: health },
    { method: "GET", path: "/healthz", isOpen: true, work: health },
    {
      method: "GET",
      path: "/stats",
      work: async () => ({
        body: JSON.stringify({
          uptime_seconds: service.uptime(),
          ...metrics.stats(),
          corpus_size: options.passages,
          method: identity.method,
          parameters: identity.parameters,
        }),
      }),
    },
    {
      method: "GET",
      path: "/metrics",
      work: async () => ({
        body: await metrics.registry.metrics(),
        contentType: metrics.registry.contentType,
      }),
    },
    { method: "GET", path: "/openapi.json", work: async () => ({ body: JSON.stringify(api) }) },
    {
      method: "GET",
      path: "/openapi.yaml",
      work: async () => ({ body: await openApiYaml(api), contentType: "application/yaml" }),
    },
  ];
}

function lookupOf({ options: { lookup } }: Service): PassageLookup {
  if (lookup !== undefined) return lookup;
  throw missing("a store of passages", "serve an index folder, or give the app a lookup");
}

function missing(what: string, advice: string): HttpError {
  return new HttpError(501, { expected: `a server with ${what}`, got: "one without", advice });
}

function unknownDocument(docid: string): HttpError {
  const got = JSON.stringify(docid.slice(0, 100));
  return new HttpError(404, { expected: "the id of a passage", got, advice: "use an id that a search gave" });
}
