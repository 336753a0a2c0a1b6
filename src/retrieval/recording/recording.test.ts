import { existsSync } from "node:fs";
import { appendFile, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { JsonRecord } from "../../corpus/formats/json-record.ts";
import type { Passage } from "../../corpus/passage.ts";
import { passageOf } from "../../corpus/passage-record.ts";
import { DataFormatError, FileError, RetrieverError } from "../../errors.ts";
import { BudgetSpentError } from "../../shared/budget.ts";
import { openLineWriter } from "../../shared/line-writer.ts";
import { buildBm25Index } from "../lexical/bm25.ts";
import { describeRetriever } from "../retriever.suite.ts";
import type { Retriever, ScoredPassage } from "../retriever.ts";
import { scriptedRetriever } from "../scripted-retriever.ts";
import { recordRetriever } from "./record-retriever.ts";
import { replayRetriever } from "./replay-retriever.ts";

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-recording-"));
  file = join(folder, "deep", "recording.jsonl");
});
afterEach(() => rm(folder, { recursive: true }));

function passage(id: string): Passage {
  return {
    id,
    title: `title "${id}"`,
    text: "text\nof \u2028 \ud83d half",
    extra: { nested: [1.5e-300, null] },
  };
}

/** Answers each query with itself and the number of the call, after a time that its name says. */
function counting(): Retriever & { readonly calls: string[] } {
  const calls: string[] = [];
  return {
    calls,
    identity: { method: "counting", corpusHash: "c", indexHash: "i", parameters: { url: "u", k1: 0.9 } },
    retrieve: async (queries, k, signal) => {
      const number = calls.push(queries.join());
      await new Promise((resolve) => setTimeout(resolve, Number(queries[0]?.match(/\d+/)?.[0] ?? 0)));
      signal?.throwIfAborted();
      if (queries.includes("bad")) throw new RetrieverError(`no answer to call ${number}`);
      return queries.map((query) =>
        Array.from({ length: k }, (_, rank) => ({
          passage: passage(`${query}-${number}-${rank}`),
          score: 0.1 / (rank + 1),
        })),
      );
    },
  };
}

async function record<T>(retriever: Retriever, use: (recorder: Retriever) => Promise<T>): Promise<T> {
  const recorder = await recordRetriever(retriever, file);
  try {
    return await use(recorder);
  } finally {
    await recorder.close();
  }
}

test("a call that no budget was left for is not recorded", async () => {
  const spent: Retriever = {
    ...counting(),
    retrieve: async () => {
      throw new RetrieverError("outer", {
        cause: new BudgetSpentError("retriever", "spent", { calls: 1, tokens: 0, dollars: 1 }),
      });
    },
  };
  await record(spent, (recorder) => expect(recorder.retrieve(["a"], 1)).rejects.toThrow("outer"));
  expect((await replayRetriever(file)).calls).toBe(0);
});

describe("a replay", () => {
  test.each(["jsonl", "jsonl.gz"])(
    "of .%s answers byte for byte, under the same identity",
    async (ending) => {
      file = join(folder, `recording.${ending}`);
      const original = counting();
      const answers = await record(original, (recorder) => recorder.retrieve(["a", "b", "a"], 3));
      const replay = await replayRetriever(file);
      expect(JSON.stringify(await replay.retrieve(["a", "b", "a"], 3))).toBe(JSON.stringify(answers));
      expect(JSON.stringify(replay.identity)).toBe(JSON.stringify(original.identity));
      expect([replay.calls, replay.warnings]).toEqual([1, []]);
    },
  );

  test("gives several answers of a query in the order in which they were asked for, then the last", async () => {
    // The first call takes the longest, so its line comes last.
    const answers = await record(counting(), (recorder) =>
      Promise.all([
        recorder.retrieve(["q 60"], 1),
        recorder.retrieve(["q 60"], 1),
        recorder.retrieve(["q 60"], 1),
      ]),
    );
    const replay = await replayRetriever(file);
    for (const expected of [...answers, answers[2]])
      expect(await replay.retrieve(["q 60"], 1)).toEqual(expected);
  });

  test("orders concurrent calls by their beginning, not by their end", async () => {
    const slow = counting();
    const retriever: Retriever = {
      ...slow,
      retrieve: async (queries, k) => {
        const turn = slow.calls.length;
        const answer = await slow.retrieve(queries, k);
        await new Promise((resolve) => setTimeout(resolve, 60 - 30 * turn));
        return answer;
      },
    };
    await record(retriever, (recorder) =>
      Promise.all([recorder.retrieve(["q"], 1), recorder.retrieve(["q"], 1), recorder.retrieve(["q"], 1)]),
    );
    const replay = await replayRetriever(file);
    const order = await replay.retrieve(["q", "q", "q"], 1);
    expect(order.map(([first]) => first?.passage.id)).toEqual(["q-1-0", "q-2-0", "q-3-0"]);
  });

  test("may batch the queries otherwise, and cut answers to a smaller k", async () => {
    const answers = await record(counting(), (recorder) => recorder.retrieve(["a", "b"], 3));
    const replay = await replayRetriever(file);
    expect(await replay.retrieve(["b"], 3)).toEqual([answers[1]]);
    expect(await replay.retrieve(["a"], 2)).toEqual([answers[0]?.slice(0, 2)]);
  });

  test("repeats recorded errors, and names a query that was not recorded", async () => {
    await record(counting(), async (recorder) => {
      await expect(recorder.retrieve(["bad"], 1)).rejects.toThrow("no answer to call 1");
      await recorder.retrieve(["good"], 1);
    });
    const replay = await replayRetriever(file);
    await expect(replay.retrieve(["bad"], 1)).rejects.toThrow(new RetrieverError("no answer to call 1"));
    await expect(replay.retrieve(["new?"], 1)).rejects.toThrow(
      'the query "new?" with k 1 was not recorded; record',
    );
    await expect(replay.retrieve(["good"], 2)).rejects.toThrow("was not recorded (it was with k 1)");
  });

  test("of any calls is equal, sequentially and grouped by query", async () => {
    const call = fc.record({
      queries: fc.array(fc.oneof(fc.constantFrom("a", "b", ""), fc.string({ unit: "binary" })), {
        maxLength: 4,
      }),
      k: fc.integer({ min: 1, max: 3 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { maxLength: 8 }), async (calls) => {
        await rm(file, { force: true });
        const answers: ScoredPassage[][][] = [];
        await record(counting(), async (recorder) => {
          for (const { queries, k } of calls) answers.push(await recorder.retrieve(queries, k));
        });
        const replay = await replayRetriever(file);
        for (const [index, { queries, k }] of calls.entries())
          expect(JSON.stringify(await replay.retrieve(queries, k))).toBe(JSON.stringify(answers[index]));
      }),
      { numRuns: 40 },
    );
  });
});

describe("a recording", () => {
  test("is on the disk before its answer is given", async () => {
    const recorder = await recordRetriever(counting(), file);
    await recorder.retrieve(["a"], 1);
    expect((await readFile(file, "utf8")).trim().split("\n")).toHaveLength(2);
    await recorder.close();
    await recorder.close();
  });

  test("keeps what a corpus may say of a passage, a page 0 too", async () => {
    const fromFile = JSON.parse(
      '{"id":"1","text":"red","sourceSpan":{"document":"d","start":0,"end":3,"page":0},"constructor":{"a":1}}',
    ) as JsonRecord;
    const index = await buildBm25Index([passageOf(fromFile, "a.jsonl", 1) as Passage]);
    const answer = await record(index, (recorder) => recorder.retrieve(["red"], 1));
    const replayed = await (await replayRetriever(file)).retrieve(["red"], 1);
    expect(JSON.stringify(replayed)).toBe(JSON.stringify(answer));
  });

  test("leaves no trace of an aborted call", async () => {
    const reason = new Error("enough");
    await record(counting(), async (recorder) => {
      await expect(recorder.retrieve(["a"], 1, AbortSignal.abort(reason))).rejects.toBe(reason);
    });
    expect((await replayRetriever(file)).calls).toBe(0);
  });

  test("goes on in another session, and refuses another retriever", async () => {
    await record(counting(), (recorder) => recorder.retrieve(["a"], 1));
    await record(counting(), (recorder) => recorder.retrieve(["a"], 1));
    expect((await replayRetriever(file)).calls).toBe(2);
    const other = { ...counting(), identity: { ...counting().identity, corpusHash: "d" } };
    await expect(recordRetriever(other, file)).rejects.toThrow(
      "that differ in corpusHash c and d; record into",
    );
  });

  test.each(["jsonl", "jsonl.gz"])(
    "of .%s cut short at any byte loses its last call at most, and goes on",
    async (ending) => {
      file = join(folder, `recording.${ending}`);
      await record(counting(), async (recorder) => {
        await recorder.retrieve(["a"], 1);
        await recorder.retrieve(["b"], 1);
      });
      const whole = await readFile(file);
      const head = (await replayRetriever(file)).identity;
      for (const cut of [1, 2, 9, 30]) {
        await writeFile(file, whole);
        await truncate(file, whole.length - cut);
        const replay = await replayRetriever(file);
        expect(replay.warnings).toEqual([
          expect.stringMatching(/recording\.jsonl.*the last line is cut short/),
        ]);
        expect(await replay.retrieve(["a"], 1)).toHaveLength(1);
        await record(counting(), async (recorder) => {
          expect((recorder as Awaited<ReturnType<typeof recordRetriever>>).warnings).toHaveLength(1);
          await recorder.retrieve(["c"], 1);
        });
        const after = await replayRetriever(file);
        expect(after.warnings).toEqual([]);
        expect(await after.retrieve(["a", "c"], 1)).toHaveLength(2);
        expect(after.identity).toEqual(head);
      }
    },
  );

  test("gzipped is what gunzip reads", async () => {
    file = join(folder, "recording.jsonl.gz");
    await record(counting(), (recorder) => recorder.retrieve(["a"], 1));
    expect(
      gunzipSync(await readFile(file))
        .toString()
        .trim()
        .split("\n"),
    ).toHaveLength(2);
  });

  const head =
    '{"recording":"forager-retrieval","version":1,"identity":{"method":"m","corpusHash":"c","indexHash":"i","parameters":{}}}\n';
  test.each([
    ["no JSON\n", ":1: expected a line of a recording, got"],
    ['{"call":0,"queries":[],"k":1,"results":[]}\n', ":1: expected the head of a recording, got a call"],
    [`${head}{"call":0,"queries":["a"],"k":1}\n`, ":2: .*expected results for each query"],
    [
      `${head}{"call":0,"queries":["a"],"k":1,"results":[[{"passage":{"id":"1"},"score":1}]]}\n`,
      ":2: .*results.0.0.passage.title",
    ],
    [head.replace('"version":1', '"version":2'), ":1: .*version 1.* in which version"],
    ["", "got an empty file"],
  ])("that is damaged is refused with its line: %j", async (text, message) => {
    file = join(folder, "bad.jsonl");
    await writeFile(file, text);
    const opening = replayRetriever(file);
    await expect(opening).rejects.toThrow(DataFormatError);
    await expect(opening).rejects.toThrow(new RegExp(`bad.jsonl.*${message}`));
  });

  test("is a file, not a folder or a device", async () => {
    await expect(recordRetriever(counting(), "/dev/null")).rejects.toThrow("/dev/null: expected a file");
    await expect(replayRetriever(folder)).rejects.toThrow("expected a file");
  });

  test("that is not there, or no gzip, is said", async () => {
    await expect(replayRetriever(file)).rejects.toThrow(FileError);
    file = join(folder, "text.gz");
    await appendFile(file, "text, not gzip");
    await expect(replayRetriever(file)).rejects.toThrow("expected gzipped text");
    await expect(recordRetriever(counting(), join(file, "below"))).rejects.toThrow(
      /cannot write .*not a folder/,
    );
  });

  test.skipIf(!existsSync("/dev/full"))("onto a full disk says so (needs /dev/full)", async () => {
    const writer = await openLineWriter("/dev/full");
    await expect(writer.write("line")).rejects.toThrow("/dev/full: the disk is full");
    await expect(writer.write("never after a damaged one")).rejects.toThrow(FileError);
    await writer.close();
  });
});

test("a scripted retriever is recorded like any other", async () => {
  const scripted = scriptedRetriever((query) =>
    query === "x" ? [passage("x")] : new RetrieverError("down"),
  );
  await record(scripted, async (recorder) => {
    await recorder.retrieve(["x"], 1);
    await recorder.retrieve(["y"], 1).catch(() => undefined);
  });
  const replay = await replayRetriever(file);
  expect(await replay.retrieve(["x"], 1)).toEqual([[{ passage: passage("x"), score: 1 }]]);
  await expect(replay.retrieve(["y"], 1)).rejects.toThrow("down");
});

describeRetriever("a recorded BM25 index", async (passages) => {
  const index = await buildBm25Index(passages);
  const recorder = await recordRetriever(
    index,
    join(await mkdtemp(join(folder, "suite-")), "recording.jsonl"),
  );
  onTestFinished(() => recorder.close());
  return recorder;
});
