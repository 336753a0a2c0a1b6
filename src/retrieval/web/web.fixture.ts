/** For tests: a web retriever whose search service is a server on 127.0.0.1 that answers as told. */
import {
  type Answer,
  type SeenRequest,
  startServer,
  type TestWorld,
  testWorld,
} from "../../shared/server.fixture.ts";
import type { PageNetwork } from "./fetch-page.ts";
import { webSourceSchema } from "./web-options.ts";
import { createWebRetriever } from "./web-retriever.ts";

export const SECRET = "s3cret-key-0123";
export const keys = {
  SERPER_API_KEY: SECRET,
  SERPAPI_API_KEY: SECRET,
  GOOGLE_API_KEY: SECRET,
  JINA_API_KEY: "j1na-key",
};

/** Two results for each query, of which the second stands twice. */
export function organic({ body }: SeenRequest): Answer {
  const { q } = body as { q: string };
  const result = (n: number) => ({
    title: `${q} ${n}`,
    link: `https://page.test/${q}/${n}`,
    snippet: `about ${q} ${n}`,
  });
  return { json: { searchParameters: {}, organic: [result(1), result(2), result(2), result(3)] } };
}

/** A retriever over a server that stands for Serper. */
export async function serper(
  answer: (request: SeenRequest, count: number) => Answer | Promise<Answer> = organic,
  options: object = {},
  world: TestWorld & { pages?: PageNetwork } = testWorld(keys),
) {
  const server = await startServer(answer);
  const parsed = webSourceSchema.parse({ type: "web", provider: "serper", url: server.url, ...options });
  return { server, world, retriever: createWebRetriever(parsed, world) };
}
