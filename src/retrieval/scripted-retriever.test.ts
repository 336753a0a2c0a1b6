import { expect, test } from "vitest";
import { RetrieverError } from "../errors.ts";
import { scriptedRetriever } from "./scripted-retriever.ts";

const one = { id: "1", title: "title 1", text: "" };
const two = { id: "2", title: "title 2", text: "" };

test("answers as the script says, best first and at most k, and records the queries", async () => {
  const retriever = scriptedRetriever((query) => (query === "both" ? [one, two] : []));
  const both = [
    { passage: one, score: 1 },
    { passage: two, score: 1 / 2 },
  ];
  expect(await retriever.retrieve(["both", "none"], 3)).toEqual([both, []]);
  expect(await retriever.retrieve(["both"], 1)).toEqual([both.slice(0, 1)]);
  expect(retriever.queries).toEqual(["both", "none", "both"]);
});

test("throws an answer that is an error, and answers again afterwards", async () => {
  const down = new RetrieverError("the server is down");
  const retriever = scriptedRetriever((query) => (query === "q" ? down : [one]));
  await expect(retriever.retrieve(["other", "q"], 1)).rejects.toBe(down);
  expect(await retriever.retrieve(["other"], 1)).toHaveLength(1);
  expect(retriever.queries).toEqual(["other", "q", "other"]);
});

test("asks nothing of the script once it is aborted", async () => {
  const reason = new Error("enough");
  const retriever = scriptedRetriever(() => [one]);
  await expect(retriever.retrieve(["q"], 1, AbortSignal.abort(reason))).rejects.toBe(reason);
  expect(retriever.queries).toEqual([]);
});
