import fc from "fast-check";
import { expect, test } from "vitest";
import { makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { PolicyError } from "../errors.ts";
import { demonstrationDatum, policyDatum, trainOnObservations } from "./batch.ts";

const segments = fc
  .array(
    fc.record({
      source: fc.constantFrom("policy" as const, "environment" as const),
      tokens: fc.array(fc.nat(99), { maxLength: 6 }),
    }),
    { maxLength: 6 },
  )
  .map((rest) => [
    makeSegment("prompt", [1, 2]),
    ...rest.map(({ source, tokens }) => makeSegment(source, tokens)),
  ]);

test("a trajectory becomes inputs, shifted targets, and weight on the sampled tokens only", () => {
  const datum = policyDatum(makeTrajectory(), 2);
  expect([...datum.inputs]).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect([...datum.targets]).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
  expect([...datum.weights]).toEqual([0, 0, 1, 1, 0, 0, 1, 1]);
  expect([...(datum.advantages ?? [])]).toEqual([0, 0, 2, 2, 0, 0, 2, 2]);
  expect([...(datum.logprobs ?? [])]).toEqual([0, 0, -0.5, -1, 0, 0, -0.5, -1]);
});

test("as many targets are trained on as tokens were sampled, and each is one of them", () => {
  fc.assert(
    fc.property(segments, (parts) => {
      const datum = policyDatum(makeTrajectory({ segments: parts }), 1);
      const trained = [...datum.targets].filter((_, t) => datum.weights[t] !== 0);
      expect(trained).toEqual(
        parts.filter(({ source }) => source === "policy").flatMap(({ tokens }) => tokens),
      );
    }),
  );
});

test("the ablation trains on what the environment said, with the advantage and given log-probabilities", () => {
  const trajectory = makeTrajectory();
  const logprobs = Float32Array.of(-9, -9, -9, -9, -3, -4, -9, -9);
  const datum = trainOnObservations(policyDatum(trajectory, 2), trajectory, logprobs);
  expect([...datum.weights]).toEqual([0, 0, 1, 1, 1, 1, 1, 1]);
  expect([...(datum.advantages ?? [])]).toEqual([0, 0, 2, 2, 2, 2, 2, 2]);
  expect([...(datum.logprobs ?? [])]).toEqual([0, 0, -0.5, -1, -3, -4, -0.5, -1]);
});

test("a demonstration weighs the policy's tokens 1 and all others as asked", () => {
  const datum = demonstrationDatum(makeTrajectory(), { contextTokenWeight: 0.25 });
  expect([...datum.weights]).toEqual([0.25, 0.25, 1, 1, 0.25, 0.25, 1, 1]);
  expect(datum.logprobs).toBeUndefined();
});

test("a policy that records no token ids or no log-probabilities cannot be trained on", () => {
  const { logprobs: _, ...bare } = makeSegment("policy", [4]);
  const prompt = makeSegment("prompt", [1]);
  expect(() => policyDatum(makeTrajectory({ segments: [prompt, bare] }), 1)).toThrow(PolicyError);
  const textOnly = { source: "policy", text: "hello", tokens: [] } as const;
  expect(() => policyDatum(makeTrajectory({ segments: [prompt, textOnly] }), 1)).toThrow("no token ids");
});
