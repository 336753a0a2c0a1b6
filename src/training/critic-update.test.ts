import { describe, expect, test } from "vitest";
import { makeTrajectory } from "../../test/make-trajectory.ts";
import type { Datum, ValueDatum } from "../algorithm/datum.ts";
import { algorithmOptionsSchema, type PpoOptions } from "../algorithm/options.ts";
import { reinforcementStageSchema } from "../config/stage-options.ts";
import type { Critic, Engine } from "../engine/engine.ts";
import { criticUpdate } from "./critic-update.ts";
import type { Lesson } from "./lesson.ts";
import type { RewardedTrajectory } from "./rollout-metrics.ts";

// An engine and a critic that only write down what they are asked for: what is locked here is the order of a PPO step
// and what goes into it. That the numbers of a real critic are right is for its own tests.
interface Call {
  readonly name: string;
  readonly data?: readonly (Datum | ValueDatum)[];
  readonly options?: object | string | undefined;
}

function recorders(): { calls: Call[]; engine: Engine; critic: Critic } {
  const calls: Call[] = [];
  const log = (name: string, data?: Call["data"], options?: Call["options"]): void => {
    calls.push({ name, ...(data && { data }), options });
  };
  const engine = {
    policy: () => ({ identity: { type: "fake", model: "fake" } }),
    forwardBackward: async (data: readonly Datum[]) => {
      log("policy.forwardBackward", data);
      return { loss: 1, logprobs: data.map(({ logprobs }) => logprobs) };
    },
    step: async (options: object) => {
      log("policy.step", undefined, options);
      return { gradientNorm: 2 };
    },
  } as unknown as Engine;
  const critic: Critic = {
    values: async (data) => data.map(({ inputs }) => new Float32Array(inputs.length).fill(0.25)),
    forwardBackward: async (data, _loss, part) => {
      log("critic.forwardBackward", data, part);
      return { loss: 3, values: data.map(({ values }) => values) };
    },
    step: async (options) => {
      log("critic.step", undefined, options);
      return { gradientNorm: 4 };
    },
    save: async () => undefined,
    load: async () => undefined,
    close: async () => undefined,
  };
  return { calls, engine, critic };
}

const sampled: readonly RewardedTrajectory[] = [
  { trajectory: makeTrajectory({ group: "a" }), reward: 1 },
  { trajectory: makeTrajectory({ group: "b", stopReason: "retrieverFailure" }), reward: undefined },
  { trajectory: makeTrajectory({ group: "c" }), reward: 0 },
  { trajectory: makeTrajectory({ group: "d" }), reward: 0 },
];

async function update(options: object, step = 0) {
  const { calls, engine, critic } = recorders();
  const schedule = { learningRate: 1e-3 };
  const algorithm = algorithmOptionsSchema.parse({
    type: "ppo",
    whiten: false,
    ...options,
  }) as PpoOptions;
  const stage = reinforcementStageSchema.parse({
    type: "reinforcement",
    name: "ppo",
    steps: 10,
    questionsPerStep: 4,
    schedule,
    algorithm,
  });
  const lesson = { engine, critic, seed: 1 } as unknown as Lesson;
  const result = await criticUpdate(lesson, { ...stage, algorithm }, { step, sampled });
  return { calls, ...result, row: result.row(1) };
}

const critic = { schedule: { learningRate: 1e-2, warmupSteps: 2 } };
const names = (calls: readonly Call[]): string[] => calls.map(({ name }) => name);
const round = ["policy.forwardBackward", "critic.forwardBackward", "policy.step", "critic.step"];

describe("criticUpdate", () => {
  test("each minibatch teaches policy and critic on the same trajectories, each with its own rate", async () => {
    const { calls } = await update({ critic, minibatchSize: 2, epochs: 2 });
    expect(names(calls)).toEqual([...round, ...round, ...round, ...round]);
    const batches = calls.filter(({ data }) => data !== undefined);
    for (let i = 0; i < batches.length; i += 2)
      expect(batches[i + 1]?.data?.map(({ inputs }) => inputs)).toEqual(
        batches[i]?.data?.map(({ inputs }) => inputs),
      );
    expect(calls[2]?.options).toMatchObject({ learningRate: 1e-3, beta1: 0.9 });
    expect(calls[3]?.options).toMatchObject({ learningRate: 5e-3, beta1: 0.9 });
  });

  test("advantages are what the critic did not expect; failures of the world are left out and counted", async () => {
    const { calls, groups } = await update({ critic });
    const advantages = calls[0]?.data?.map((datum) => [...((datum as Datum).advantages ?? [])]);
    const won = [0, 0, 0.75, 0.75, 0, 0, 0.75, 0.75];
    const lost = won.map((value) => (value === 0 ? 0 : -0.25));
    expect(advantages).toHaveLength(3);
    expect(advantages).toEqual(expect.arrayContaining([won, lost, lost]));
    expect(groups).toMatchObject({ groups: 3, failed: 1, broken: 0, withoutSignal: 0 });
    expect(groups.trajectories.map(({ advantage }) => advantage)).toEqual([0.75, -0.25, -0.25]);
  });

  test("weights are those of a mean over the trained tokens of the minibatch, for both", async () => {
    const { calls } = await update({ critic });
    for (const call of calls.slice(0, 2))
      for (const { weights } of call.data ?? [])
        expect([...weights]).toEqual([0, 0, 1, 1, 0, 0, 1, 1].map((weight) => Math.fround(weight / 12)));
  });

  test("while the critic leads, the policy stays as it is and reports no loss", async () => {
    const options = { critic: { ...critic, leadSteps: 2 }, minibatchSize: 2 };
    for (const step of [0, 1]) {
      const { calls, row } = await update(options, step);
      expect(names(calls)).toEqual([
        "critic.forwardBackward",
        "critic.step",
        "critic.forwardBackward",
        "critic.step",
      ]);
      expect(row).toMatchObject({ "optimizer/updates": 0, "critic/loss": 3, "critic/gradientNorm": 4 });
      expect(row["loss/value"]).toBeUndefined();
    }
    expect(names((await update(options, 2)).calls)).toEqual([...round, ...round]);
  });

  test("a shared trunk learns from the critic's loss by its coefficient, and not at all during the lead", async () => {
    const shared = { critic: { ...critic, trunk: "shared", coefficient: 0.5, leadSteps: 1 } };
    const parts = async (step: number) => {
      const { calls, row } = await update(shared, step);
      expect(row["critic/loss"]).toBe(6);
      const call = calls.find(({ name }) => name === "critic.forwardBackward");
      expect(call?.data?.[0]?.weights[2]).toBeCloseTo(0.5 / 12, 8);
      return call?.options;
    };
    expect([await parts(0), await parts(1)]).toEqual(["head", "all"]);
  });

  test("the metrics of the critic are those of before the updates", async () => {
    const { row } = await update({ critic });
    expect(row).toMatchObject({
      "critic/explainedVariance": expect.closeTo(0, 10),
      "critic/valueMean": 0.25,
      "critic/clipFraction": 0,
      "critic/learningRate": 5e-3,
      "loss/value": 1,
      "gradient/norm": 2,
    });
    expect(row["critic/returnMean"]).toBeCloseTo(1 / 3, 6);
  });
});
