import fc from "fast-check";
import { expect, test } from "vitest";
import { questionKey } from "../corpus/question.ts";
import { environmentOptionsSchema } from "../environment/environment-options.ts";
import { RetrieverError } from "../errors.ts";
import { scriptedRetriever } from "../retrieval/scripted-retriever.ts";
import { random } from "../shared/random.ts";
import type { Policy } from "./policy.ts";
import type { RolloutRequest, RolloutSetting } from "./rollout.ts";
import { runRollouts } from "./run-rollouts.ts";
import { scriptedPolicy } from "./scripted-policy.ts";

const question = (id: string, dataset = "test") => ({
  id,
  dataset,
  text: `question ${id}`,
  goldAnswers: ["b"],
  goldPassages: [],
});

function requests(count: number): RolloutRequest[] {
  return Array.from({ length: count }, (_, i) => ({
    question: question(`${i}`),
    group: `test/${i}`,
    sample: 0,
    seed: 3,
  }));
}

/** Searches for the number in the question, then answers with its seed after a while that depends on it. */
function slowPolicy(): Policy & { readonly mostAtOnce: () => number } {
  let atOnce = 0;
  let most = 0;
  return {
    identity: { type: "slow", model: "test" },
    mostAtOnce: () => most,
    complete: async (contexts, _, signal) => {
      most = Math.max(most, ++atOnce);
      for (let i = contexts[0]?.seed ?? 0; i % 7 !== 0; i++) await new Promise(setImmediate);
      atOnce--;
      signal?.throwIfAborted();
      return contexts.map(({ text, seed }) => {
        const [, id] = /question (\d+)/.exec(text) as RegExpExecArray;
        const turn = text.includes("<information>") ? `<answer>${seed}</answer>` : `<search>${id}</search>`;
        return { text: turn, finishReason: "stop" as const, usage: { promptTokens: 0, completionTokens: 0 } };
      });
    },
  };
}

function setting(changes: Partial<RolloutSetting> = {}): RolloutSetting {
  return {
    policy: slowPolicy(),
    retriever: scriptedRetriever(() => []),
    environment: environmentOptionsSchema.parse({ prompt: "bare" }),
    sampling: { temperature: 1, topP: 1, topK: 0 },
    ...changes,
  };
}

test("results are in the order of the requests and do not depend on how many run at once", async () => {
  const reference = await runRollouts(requests(20), setting());
  expect(reference.map((trajectory) => trajectory.group)).toEqual(requests(20).map(({ group }) => group));
  expect(new Set(reference.map((trajectory) => trajectory.answer)).size).toBe(20);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 25 }), async (concurrency) => {
      const policy = slowPolicy();
      expect(await runRollouts(requests(20), setting({ policy }), { concurrency })).toEqual(reference);
      expect(policy.mostAtOnce()).toBeLessThanOrEqual(concurrency);
      expect(policy.mostAtOnce()).toBeGreaterThan(Math.min(concurrency, 4) / 2);
    }),
    { numRuns: 10 },
  );
});

test("each trajectory is reported once, when it ends", async () => {
  const reported = new Map<number, string>();
  const results = await runRollouts(requests(9), setting(), {
    onTrajectory: (trajectory, index) => reported.set(index, trajectory.group),
  });
  expect([...reported.keys()].sort()).toEqual([...results.keys()]);
  for (const [index, group] of reported) expect(group).toBe(results[index]?.group);
});

test("a retriever that fails in the middle spoils only the episodes it failed", async () => {
  const isBroken = (query: string) => Number(query) % 3 === 1;
  const retriever = scriptedRetriever((query) => (isBroken(query) ? new RetrieverError("down") : []));
  const results = await runRollouts(requests(12), setting({ retriever }), { concurrency: 5 });
  results.forEach((trajectory, i) => {
    const expected = isBroken(`${i}`)
      ? { stopReason: "retrieverFailure", failure: "down" }
      : { stopReason: "answer" };
    expect(trajectory).toMatchObject(expected);
  });
});

test("an abort marks what has not ended and keeps what has", async () => {
  const controller = new AbortController();
  const results = await runRollouts(requests(10), setting(), {
    concurrency: 2,
    signal: controller.signal,
    onTrajectory: (_, index) => {
      if (index === 3) controller.abort();
    },
  });
  const reasons = results.map((trajectory) => trajectory.stopReason);
  expect(results).toHaveLength(10);
  expect(reasons[3]).toBe("answer");
  expect(reasons.slice(5)).toEqual(Array(5).fill("aborted"));
});

test("a defect of the program stops the other episodes and is thrown", async () => {
  let started = 0;
  const policy = scriptedPolicy(() => {
    if (++started === 3) throw new TypeError("a bug");
    return "hm";
  });
  await expect(runRollouts(requests(50), setting({ policy }), { concurrency: 2 })).rejects.toThrow("a bug");
  expect(started).toBeLessThan(10);
});

test("questions of two data sets with equal ids are independent episodes", async () => {
  const policy = scriptedPolicy(["<answer>b</answer>"]);
  const pair = ["nq", "hotpotqa"].map((dataset) => {
    const asked = question("1", dataset);
    return { question: asked, group: questionKey(asked), sample: 0, seed: 1 };
  });
  const results = await runRollouts(pair, setting({ policy }));
  expect(new Set(results.map((trajectory) => trajectory.group)).size).toBe(2);
  expect(new Set(policy.calls.map((call) => call.episode)).size).toBe(2);
  expect(new Set(policy.calls.map((call) => call.seed)).size).toBe(2);
});

test("no requests, no trajectories", async () => {
  expect(await runRollouts([], setting())).toEqual([]);
});

test("the order in which requests are asked for does not change their chance", async () => {
  const shuffled = random(1, "order").shuffle(requests(10));
  const byGroup = (list: Awaited<ReturnType<typeof runRollouts>>) =>
    Object.fromEntries(list.map((trajectory) => [trajectory.group, trajectory.answer]));
  expect(byGroup(await runRollouts(shuffled, setting()))).toEqual(
    byGroup(await runRollouts(requests(10), setting())),
  );
});
