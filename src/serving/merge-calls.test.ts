import { expect, test } from "vitest";
import type { Retriever } from "../retrieval/retriever.ts";
import { mergeCalls } from "./merge-calls.ts";
import { heldRetriever, wordRetriever } from "./serving.fixture.ts";

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A retriever whose calls take until the next turn of the event loop. */
function slowRetriever(): ReturnType<typeof wordRetriever> {
  const words = wordRetriever();
  return {
    ...words,
    retrieve: async (queries, k, signal) => {
      await settle();
      return words.retrieve(queries, k, signal);
    },
  };
}

test("starts the first call at once and joins those that come meanwhile, each with its own answer", async () => {
  const inner = slowRetriever();
  const merged = mergeCalls(inner, 4);
  const asked = [["Italy"], ["France", "zebra"], ["Italy"], [], ["France"], ["Italy", "France"]];
  const answers = await Promise.all(asked.map((queries) => merged.retrieve(queries, 1)));
  expect(answers).toEqual(await Promise.all(asked.map((queries) => wordRetriever().retrieve(queries, 1))));
  expect(inner.calls.map(({ queries }) => queries.length)).toEqual([1, 4, 2]);
});

test("joins only calls for equally many passages, and lets a large call go alone", async () => {
  const inner = slowRetriever();
  const merged = mergeCalls(inner, 2);
  await Promise.all([
    merged.retrieve(["Italy"], 1),
    merged.retrieve(["Italy"], 1),
    merged.retrieve(["Italy"], 2),
    merged.retrieve(["Italy", "France", "zebra"], 2),
    merged.retrieve(["France"], 1),
  ]);
  expect(inner.calls.map(({ queries, k }) => [queries.length, k])).toEqual([
    [1, 1],
    [2, 1],
    [1, 2],
    [3, 2],
  ]);
});

test("stops a joined call only when nobody waits for it any more", async () => {
  const inner = heldRetriever();
  const merged = mergeCalls(inner, 8);
  const controllers = [0, 1, 2].map(() => new AbortController());
  const calls = controllers.map(({ signal }) =>
    merged.retrieve(["Italy"], 1, signal).catch((error: Error) => error.message),
  );
  await settle();
  controllers[1]?.abort(new Error("second"));
  inner.release();
  expect(await calls[1]).toBe("second");
  expect(await calls[0]).toEqual([[]]);
  await settle();
  expect(inner.signals).toHaveLength(2);
  expect(inner.signals[1]?.aborted).toBe(false);
  controllers[2]?.abort(new Error("third"));
  expect(inner.signals[1]?.aborted).toBe(true);
  expect(await calls[2]).toBe("third");
});

test("passes a failure to everybody who waits for it, and goes on", async () => {
  let failures = 1;
  const flaky: Retriever = {
    ...wordRetriever(),
    retrieve: async (queries, k, signal) => {
      await settle();
      if (failures-- > 0) throw new Error("broken");
      return wordRetriever().retrieve(queries, k, signal);
    },
  };
  const merged = mergeCalls(flaky, 8);
  await expect(merged.retrieve(["Italy"], 1)).rejects.toThrow("broken");
  expect(await merged.retrieve(["zebra"], 1)).toEqual([[]]);
});
