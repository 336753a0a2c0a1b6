import { describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { collapseOptionsSchema, judgeCollapse, type StepHealth } from "./collapse.ts";

const options = collapseOptionsSchema.parse({});

function history(steps: number, at: (step: number) => Partial<StepHealth> = () => ({})): StepHealth[] {
  return Array.from({ length: steps }, (_, step) => ({
    step,
    rewardMean: 0.5,
    validActionRate: 0.95,
    policyTokens: 20,
    loss: -0.01,
    gradientNorm: 0.5,
    klDivergence: 0.01,
    ...at(step),
  }));
}

/** The first step at which the watchdog stops, watched after every step, with its reason. */
function firstStop(steps: readonly StepHealth[]): { step: number; reason: string } | undefined {
  for (let end = 1; end <= steps.length; end++) {
    const verdict = judgeCollapse(steps.slice(0, end), options);
    if (verdict.type === "stop") return { step: end - 1, reason: verdict.reason };
  }
  return undefined;
}

describe("healthy runs", () => {
  test("noisy runs that learn, or stay where they are, never trip", () => {
    for (let seed = 0; seed < 300; seed++) {
      const chance = random(seed, "healthy");
      const from = chance.next();
      const to = from + (0.9 - from) * chance.next();
      const noise = 0.15 * chance.next();
      const clip = (value: number): number => Math.max(0, Math.min(1, value));
      const steps = history(20 + chance.below(41), (step) => ({
        rewardMean: clip(from + (to - from) * Math.min(1, step / 30) + noise * chance.normal()),
        validActionRate: clip(0.6 + 0.3 * from + 0.1 * chance.normal()),
        policyTokens: 15 * (1 + step / 30) * Math.exp(0.2 * chance.normal()),
        gradientNorm: 0.5 * Math.exp(chance.normal()),
        klDivergence: 0.05 * Math.exp(chance.normal()),
      }));
      expect(firstStop(steps), `seed ${seed}`).toBeUndefined();
    }
  });

  test("one bad step, one gradient spike and a slow change of taste are no collapse", () => {
    const oneBadStep = history(40, (step) => (step === 20 ? { rewardMean: 0, gradientNorm: 500 } : {}));
    expect(firstStop(oneBadStep)).toBeUndefined();
    expect(firstStop(history(60, (step) => ({ rewardMean: 0.6 - step * 0.002 })))).toBeUndefined();
  });

  test("a start of zero reward and an empty history are no collapse", () => {
    expect(judgeCollapse([], options)).toEqual({ type: "ok" });
    expect(firstStop(history(40, () => ({ rewardMean: 0 })))).toBeUndefined();
  });

  test("steps without an update bring no loss, gradient or divergence and are judged by the rest", () => {
    const steps = history(30).map(({ step, rewardMean, validActionRate, policyTokens }) => ({
      step,
      rewardMean,
      validActionRate,
      policyTokens,
    }));
    expect(firstStop(steps)).toBeUndefined();
  });
});

describe("collapses", () => {
  const crash = (step: number): boolean => step >= 25;
  test.each<{ name: string; at: (step: number) => Partial<StepHealth>; reason: RegExp }>([
    {
      name: "reward crashes",
      at: (step) => (crash(step) ? { rewardMean: 0.05 } : {}),
      reason: /mean reward fell from 0\.500/,
    },
    {
      name: "reward decays slowly to nothing",
      at: (step) => ({ rewardMean: Math.max(0, 0.6 - step * 0.012) }),
      reason: /mean reward fell/,
    },
    {
      name: "actions become invalid",
      at: (step) => (crash(step) ? { validActionRate: 0.3 } : {}),
      reason: /valid actions fell/,
    },
    {
      name: "turns grow without end",
      at: (step) => (crash(step) ? { policyTokens: 400 } : {}),
      reason: /tokens grew from 20\.0/,
    },
    {
      name: "gradients explode",
      at: (step) => (crash(step) ? { gradientNorm: 80 } : {}),
      reason: /gradient norm stayed above 100 times/,
    },
    {
      name: "the policy runs away",
      at: (step) => (crash(step) ? { klDivergence: 2 } : {}),
      reason: /more than 1 nats/,
    },
  ])("$name", ({ at, reason }) => {
    const stop = firstStop(history(60, at));
    expect(stop?.reason).toMatch(reason);
    expect(stop?.step).toBeGreaterThan(20);
  });

  test("a crash in noise is seen within two windows", () => {
    const chance = random(5, "crash");
    const steps = history(60, (step) => ({
      rewardMean: Math.max(0, (crash(step) ? 0.05 : 0.7) + 0.08 * chance.normal()),
    }));
    const stop = firstStop(steps);
    expect(stop?.step).toBeLessThanOrEqual(25 + 2 * options.window);
    expect(stop?.step).toBeGreaterThanOrEqual(25);
  });

  test.each(["loss", "gradientNorm", "rewardMean", "klDivergence", "criticLoss"] as const)(
    "%s is not a number",
    (key) => {
      const steps = history(3, (step) => (step === 2 ? { [key]: Number.NaN } : {}));
      expect(firstStop(steps)).toEqual({ step: 2, reason: `${key} became NaN in step 2` });
    },
  );
});
