import { expect, test } from "vitest";
import { makeQuestion } from "../../test/make-trajectory.ts";
import { questionKey } from "../corpus/question.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { ForagerError, RetrieverError } from "../errors.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import type { Policy, SamplingOptions } from "../rollout/policy.ts";
import { type ScriptedPolicy, scriptedPolicy } from "../rollout/scripted-policy.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { type EvaluateInput, evaluate, type KeptEpisodes } from "./evaluate.ts";
import { evaluationOptionsSchema } from "./evaluation-options.ts";
import { evaluationResultSchema } from "./result.ts";

/** Finds one passage for every query, except for those it fails on. */
function retriever(failsOn: (query: string) => boolean = () => false): Retriever {
  return {
    identity: { method: "scripted", corpusHash: "c", indexHash: "i", parameters: {} },
    retrieve: async (queries) =>
      queries.map((query) => {
        if (failsOn(query)) throw new RetrieverError(`no answer for ${query}`);
        return [{ passage: { id: query, title: query, text: "Paris" }, score: 1 }];
      }),
  };
}

const questions = (n: number) =>
  Array.from({ length: n }, (_, i) =>
    makeQuestion({ id: `${i}`, text: `number ${i}?`, goldPassages: [`${i}`] }),
  );

/** Searches for the number of the question, then answers Paris for even numbers and Rome for odd ones. */
function policy(): ScriptedPolicy {
  return scriptedPolicy((context, turn) => {
    const number = /number (\d+)/.exec(context.text)?.[1] ?? "";
    if (turn === 0) return `<search>${number}</search>`;
    return `<answer>${Number(number) % 2 === 0 ? "Paris" : "Rome"}</answer>`;
  });
}

function input(changes: Partial<EvaluateInput> = {}): EvaluateInput {
  return {
    policy: policy(),
    retriever: retriever(),
    environment: environmentOptionsSchema.parse({ prompt: "bare" }),
    questions: questions(10),
    split: "test",
    codeVersion: "0.0.0",
    seed: 1,
    ...changes,
  };
}

test("257 questions, 256 at a time, are 257 items in their order", async () => {
  const progress: number[] = [];
  const { result, trajectories } = await evaluate(
    input({ questions: questions(257), concurrency: 256, onProgress: ({ done }) => progress.push(done) }),
  );
  expect(result.items.map(({ id }) => id)).toEqual(questions(257).map(({ id }) => id));
  expect(trajectories).toHaveLength(257);
  expect(progress).toEqual(Array.from({ length: 257 }, (_, i) => i + 1));
  expect(result.contract.n).toBe(257);
  expect(result.summary.overall).toMatchObject({
    n: 257,
    failed: 0,
    em: { mean: 129 / 257 },
    retrievalRecall: { mean: 1 },
    searches: { mean: 1 },
  });
});

test("the result does not depend on how many episodes run at once", async () => {
  const one = await evaluate(input({ concurrency: 1 }));
  expect((await evaluate(input({ concurrency: 7 }))).result).toEqual(one.result);
});

test("questions the retriever failed on are reported apart and lower no mean", async () => {
  const failing = retriever((query) => Number(query) % 2 === 1);
  const { result } = await evaluate(input({ retriever: failing }));
  expect(result.items).toHaveLength(10);
  expect(result.summary.overall).toMatchObject({ n: 5, failed: 5, em: { n: 5, mean: 1 } });
  expect(result.items[1]).toMatchObject({ failed: true, failure: "no answer for 1" });
});

test("decoding is greedy unless asked otherwise, and the contract says which", async () => {
  const seen: SamplingOptions[] = [];
  const watched = (): Policy => {
    const inner = policy();
    return {
      identity: inner.identity,
      complete: (contexts, options, signal) => {
        seen.push(options);
        return inner.complete(contexts, options, signal);
      },
    };
  };
  const greedy = await evaluate(input({ policy: watched(), questions: questions(1) }));
  expect(seen[0]).toMatchObject({ temperature: 0 });
  expect(greedy.result.contract.sampling).toEqual({ temperature: 0, topP: 1, topK: 0 });
  const sampling = { temperature: 0.7, topP: 0.9, topK: 5 };
  const sampled = await evaluate(input({ policy: watched(), questions: questions(1), sampling }));
  expect(seen.at(-1)).toMatchObject(sampling);
  expect(sampled.result.contract.sampling).toEqual(sampling);
});

test("a stored result is read back as it was", async () => {
  const failing = retriever((query) => query === "3");
  const { result } = await evaluate(input({ retriever: failing, now: () => 5 }));
  expect(evaluationResultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
});

test("an interrupted evaluation throws instead of reporting what it has", async () => {
  const controller = new AbortController();
  const onProgress = (): void => controller.abort(new Error("stop"));
  await expect(evaluate(input({ concurrency: 1, signal: controller.signal, onProgress }))).rejects.toThrow(
    "stop",
  );
});

test("two questions with one key are refused", async () => {
  const twice = [...questions(2), ...questions(1)];
  await expect(evaluate(input({ questions: twice }))).rejects.toThrow(ForagerError);
  await expect(evaluate(input({ questions: twice }))).rejects.toThrow("question atlas/0 appears twice");
});

test("a recipe evaluates greedily on 256 questions unless it says otherwise", () => {
  expect(evaluationOptionsSchema.parse({})).toEqual({
    n: 256,
    sampling: { temperature: 0, topP: 1, topK: 0 },
  });
});

test("what searches are billed is divided among the questions, and in the cost of the whole", async () => {
  let dollars = 7;
  const found = retriever();
  const web: Retriever = {
    ...found,
    spent: () => ({ calls: 0, tokens: 0, dollars }),
    retrieve: async (queries, k) => {
      dollars += 0.5 * queries.length;
      return await found.retrieve(queries, k);
    },
  };
  const { result } = await evaluate(input({ retriever: web, questions: questions(4) }));
  expect(result.cost).toMatchObject({
    dollars: 2,
    pricing: "partly",
    parts: { retrieval: { calls: 4, dollars: 2 } },
  });
  expect(result.items.map((item) => !item.failed && item.totalDollars)).toEqual([0.5, 0.5, 0.5, 0.5]);
  expect(evaluationResultSchema.parse(JSON.parse(JSON.stringify(result)))).toEqual(result);
});

/** Keeps episodes in memory, under the settings that they are asked for by. */
function keeper() {
  const episodes = new Map<string, Map<string, Trajectory>>();
  let current = new Map<string, Trajectory>();
  const kept: KeptEpisodes = {
    load: async (setting) => {
      current = episodes.get(setting) ?? new Map();
      episodes.set(setting, current);
      return new Map(current);
    },
    add: (trajectory) => current.set(questionKey(trajectory.question), trajectory),
  };
  return { kept, episodes };
}

test("episodes that were kept are not played again, those that failed are, and the result is that of one go", async () => {
  const { kept, episodes } = keeper();
  const failing = retriever((query) => query === "3");
  const first = await evaluate(input({ retriever: failing, kept }));
  expect(first.result.summary.overall).toMatchObject({ n: 9, failed: 1 });
  const asked: string[] = [];
  const watched: Retriever = {
    ...retriever(),
    retrieve: async (queries, k) => {
      asked.push(...queries);
      return await retriever().retrieve(queries, k);
    },
  };
  const progress: number[] = [];
  const second = await evaluate(
    input({ retriever: watched, kept, onProgress: ({ done }) => progress.push(done) }),
  );
  expect(asked).toEqual(["3"]);
  expect(progress).toEqual([9, 10]);
  expect(second.result).toEqual((await evaluate(input())).result);
  await evaluate(input({ kept, seed: 2 }));
  expect(episodes.size).toBe(2);
});

test("what searches of kept episodes were billed counts at the price that a query has now", async () => {
  let dollars = 0;
  const web: Retriever = {
    ...retriever(),
    spent: () => ({ calls: 0, tokens: 0, dollars }),
    retrieve: async (queries, k) => {
      dollars += 0.01 * queries.length;
      return await retriever((query) => query === "3" && dollars < 0.105).retrieve(queries, k);
    },
  };
  const { kept } = keeper();
  await evaluate(input({ retriever: web, kept }));
  const { result } = await evaluate(input({ retriever: web, kept }));
  expect(result.cost?.dollars).toBeCloseTo(0.1, 12);
  expect(result.items[0]).toMatchObject({ retrievalDollars: expect.closeTo(0.01, 12) });
});
