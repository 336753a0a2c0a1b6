/** For tests of retrieval servers: options, and a server that has none of the routes on which servers describe themselves. */
import { type Answer, type SeenRequest, startServer } from "../../shared/server.fixture.ts";
import type { DialectName } from "./dialects.ts";
import { remoteSourceSchema } from "./remote-options.ts";

export interface Given {
  readonly dialect?: DialectName;
  readonly [option: string]: unknown;
}

/** Options with their defaults; the index of `pyserini` is `wiki 18`. */
export function optionsFor(url: string, given: Given = {}) {
  const index = given.dialect === "pyserini" ? { index: "wiki 18" } : {};
  return remoteSourceSchema.parse({ type: "remote", url, ...index, ...given });
}

/** Answers /health and /stats with 404, as most servers of the field do. */
export async function plainServer(answer: (request: SeenRequest, count: number) => Answer) {
  const server = await startServer((request, count) =>
    /\/(healthz?|stats)$/.test(request.path) ? { status: 404, text: "" } : answer(request, count),
  );
  const asked = (): SeenRequest[] => server.requests.filter(({ path }) => !/\/(healthz?|stats)$/.test(path));
  return { ...server, asked };
}
