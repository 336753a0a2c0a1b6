/** Our own clients of other people's servers, against our own server: each dialect from end to end over a socket. */
import { expect, onTestFinished, test } from "vitest";
import { dialectNames } from "../retrieval/remote/dialects.ts";
import { remoteSourceSchema } from "../retrieval/remote/remote-options.ts";
import { createRemoteRetriever } from "../retrieval/remote/remote-retriever.ts";
import type { NetworkWorld } from "../shared/network-world.ts";
import { appOf, wordRetriever } from "./serving.fixture.ts";
import { startServer } from "./start-server.ts";

const world: NetworkWorld = {
  fetch,
  now: () => performance.now(),
  sleep: () => Promise.resolve(),
  random: () => 0,
  keys: { KEY: "s3cret" },
};

test.each(dialectNames)("%s gives the passages and scores of the retriever", async (dialect) => {
  const app = appOf(wordRetriever(), { apiKey: "s3cret", name: "my index" });
  const server = await startServer(app.fetch, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => server.close());
  const options = remoteSourceSchema.parse({
    type: "remote",
    url: server.url,
    dialect,
    keyVariable: "KEY",
    ...(dialect === "pyserini" && { index: "my index" }),
  });
  const remote = await createRemoteRetriever(options, world);
  const queries = ["capital of Italy", "zebra", "Tōkyō 🗼", "the capital of France"];
  const shown = (results: Awaited<ReturnType<typeof remote.retrieve>>): unknown =>
    results.map((found) => found.map(({ passage: { id, title, text }, score }) => [id, title, text, score]));
  expect(shown(await remote.retrieve(queries, 2))).toEqual(shown(await wordRetriever().retrieve(queries, 2)));
});
