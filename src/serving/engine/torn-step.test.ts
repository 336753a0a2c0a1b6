/** A step of the optimiser that fails half way: its weights go to nobody until others replace them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { adamStep } from "../../engine/adam.ts";
import { adam, randomDatum, tinyEngine } from "../../engine/engine.fixture.ts";
import { EngineError } from "../../errors.ts";
import { openEmbeddedBackend } from "./embedded-backend.ts";

vi.mock("../../engine/adam.ts", async (importOriginal) => {
  const original = await importOriginal<typeof import("../../engine/adam.ts")>();
  return { ...original, adamStep: vi.fn(original.adamStep) };
});

test("weights of a torn step are neither sampled, saved nor trained on, and a saved state takes their place", async () => {
  const scratch = await mkdtemp(join(tmpdir(), "forager-torn-"));
  onTestFinished(() => rm(scratch, { recursive: true, force: true }));
  const base = join(scratch, "base");
  const engine = await tinyEngine();
  await engine.save(base);
  await engine.close();
  const options = { threads: 1, tokenBudget: 64, maxSlots: 4, cacheMemory: 1e8 };
  const backend = await openEmbeddedBackend(base, options);
  onTestFinished(() => backend.close());
  const shape = { rank: 3, alpha: 6, trainsAttention: true, trainsFeedForward: true, seed: 5 };
  const model = await backend.create(shape);
  onTestFinished(() => model.close());
  const learn = async () => await model.forwardBackward([randomDatum(9, 1)], { type: "crossEntropy" });
  const saved = join(scratch, "saved");
  await model.save(saved);

  await learn();
  vi.mocked(adamStep).mockRejectedValueOnce(new EngineError("a thread ended"));
  await expect(model.step(adam)).rejects.toThrow("a thread ended");
  await expect(model.snapshot()).rejects.toThrow("failed half way");
  await expect(model.save(join(scratch, "torn"))).rejects.toThrow("failed half way");
  await expect(learn()).rejects.toThrow("failed half way");

  await model.load(saved, { optimizer: true });
  await learn();
  expect((await model.step(adam)).gradientNorm).toBeGreaterThan(0);
  await (await model.snapshot()).close();
});
