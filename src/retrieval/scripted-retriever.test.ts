import { expect, test } from "vitest";
import { RetrieverError } from "../errors.ts";
import { scriptedRetriever } from "./scripted-retriever.ts";

const [one, two] = ["1", "2"].map((id) => ({ id, title: `title ${id}`, text: "" })) as [
  { id: string; title: string; text: string },
  { id: string; title: string; text: string },
];

test("answers as the script says, and records the calls", async () => {
  const retriever = scriptedRetriever(new Map([["both", [one, two]]]));
  expect(await retriever.retrieve(["both", "both"], 1)).toEqual([
    [{ passage: one, score: 1 }],
    [{ passage: one, score: 1 }],
  ]);
  expect((await retriever.retrieve(["both"], 3))[0]?.map(({ passage }) => passage)).toEqual([one, two]);
  expect(retriever.calls).toEqual([
    { queries: ["both", "both"], k: 1 },
    { queries: ["both"], k: 3 },
  ]);
});

test("throws the error of the script, and one of its own for a query that is not in it", async () => {
  const down = new RetrieverError("the server is down");
  const retriever = scriptedRetriever(new Map([["q", down]]));
  await expect(retriever.retrieve(["q"], 1)).rejects.toBe(down);
  await expect(retriever.retrieve(["other"], 1)).rejects.toThrow('the script holds no answer to "other"');
  expect(retriever.calls).toHaveLength(2);
});

test("fails at the call it is told to, and not before or after", async () => {
  const retriever = scriptedRetriever(new Map([["q", [one]]]), { failAtCall: 2 });
  await retriever.retrieve(["q"], 1);
  await expect(retriever.retrieve(["q"], 1)).rejects.toThrow(RetrieverError);
  expect(await retriever.retrieve(["q"], 1)).toHaveLength(1);
});

test("stops when aborted", async () => {
  const reason = new Error("enough");
  const retriever = scriptedRetriever(new Map([["q", [one]]]));
  await expect(retriever.retrieve(["q"], 1, AbortSignal.abort(reason))).rejects.toBe(reason);
});
