import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { EngineError, FileError } from "../errors.ts";
import type { AdamOptions } from "./engine.ts";
import { type CreateMoments, momentsInFile, momentsInMemory } from "./moments.ts";
import { Optimizer } from "./optimizer.ts";
import type { Parameter } from "./parameters.ts";

const options: AdamOptions = {
  learningRate: 0.1,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 0,
};

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-optimizer-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

const parameters = (): Map<string, Parameter> =>
  new Map([
    ["a", { shape: [3], data: Float32Array.of(1, 2, 3) }],
    ["b", { shape: [2], data: Float32Array.of(4, 5) }],
  ]);

function optimizerOf(trained: Map<string, Parameter>, createMoments: CreateMoments): Optimizer {
  const optimizer = new Optimizer(trained, { createMoments, threads: 1 });
  for (const { data } of optimizer.gradients.values()) data.fill(1);
  return optimizer;
}

test("a folder that cannot hold the moments is told before any weight changes", async () => {
  const trained = parameters();
  const optimizer = optimizerOf(trained, momentsInFile(join(folder, "missing")));
  await expect(optimizer.step(options)).rejects.toThrow(FileError);
  expect(trained).toEqual(parameters());
  await optimizer.save(folder);
});

test("weights of a step that failed half way are neither saved nor trained on; a whole state can replace them", async () => {
  const trained = parameters();
  await optimizerOf(parameters(), momentsInMemory).save(folder);
  const failing: CreateMoments = async (all) => {
    const moments = await momentsInMemory(all);
    return {
      ...moments,
      inMemory: undefined,
      change: async (name, change) => {
        if (name === "b") throw new FileError("the disk is gone");
        await moments.change(name, change);
      },
    };
  };
  const optimizer = optimizerOf(trained, failing);
  await expect(optimizer.step(options)).rejects.toThrow("the disk is gone");
  expect(trained.get("a")?.data[0]).toBeCloseTo(0.9, 5);
  expect(trained.get("b")?.data[0]).toBe(4);
  await expect(optimizer.save(folder)).rejects.toThrow(EngineError);
  await expect(optimizer.step(options)).rejects.toThrow("failed half way");
  // The run goes on from its newest checkpoint.
  await expect(optimizer.step(options)).rejects.toMatchObject({ kind: "failed" });
  await optimizer.replace(await optimizer.read(folder));
  await optimizer.save(folder);
});
