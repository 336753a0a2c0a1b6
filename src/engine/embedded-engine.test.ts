import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CheckpointError, EngineError } from "../errors.ts";
import type { Completion } from "../rollout/policy.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import { randomDatum, tinyEngine, tinyModel, tinyTokenizer } from "./engine.fixture.ts";
import { engineSuite } from "./engine.suite.ts";

const batch = [30, 7, 52, 1, 18].map((length, seed) => {
  const datum = randomDatum(length, seed);
  datum.weights[length - 1] = 1;
  return datum;
});
const adam = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 0,
};

describe.each([false, true])("with tied embeddings: %s", (tieEmbeddings) => {
  engineSuite("the embedded engine", {
    create: (seed) => tinyEngine({ seed, model: { tieEmbeddings }, options: { tokenBudget: 64 } }),
    createOther: () => tinyEngine({ model: { tieEmbeddings, layers: 1 } }),
    batch,
  });
});

describe("EmbeddedEngine", () => {
  let scratch: string;
  let engine: EmbeddedEngine;
  beforeAll(async () => {
    scratch = await mkdtemp(join(tmpdir(), "forager-embedded-"));
    engine = await tinyEngine();
  });
  afterAll(async () => {
    await engine.close();
    await rm(scratch, { recursive: true, force: true });
  });

  test("a folder it wrote opens as the same model, and is refused where the tokenizer has more ids", async () => {
    const folder = join(scratch, "model");
    await engine.save(folder);
    const opened = await EmbeddedEngine.open(folder, { threads: 1, tokenBudget: 64, maxSlots: 2 });
    try {
      expect(opened.model).toEqual(tinyModel);
      expect(opened.tokenizer.hash).toBe(tinyTokenizer.hash);
      expect(await opened.logprobs(batch.slice(0, 1))).toEqual(await engine.logprobs(batch.slice(0, 1)));
    } finally {
      await opened.close();
    }
    await expect(tinyEngine({ model: { vocabularySize: 280 } })).rejects.toThrow(
      new EngineError(
        `the tokenizer has ${tinyTokenizer.vocabularySize} ids, the model 280; use the tokenizer that belongs to the model`,
      ),
    );
  });

  test("says which shapes differ when a checkpoint is of another model", async () => {
    const other = await tinyEngine({ model: { layers: 1 } });
    const folder = join(scratch, "other");
    await other.save(folder);
    await other.close();
    await expect(engine.load(folder)).rejects.toThrow(
      /holds a model of another shape .*"layers":1.*"layers":2/,
    );
  });

  test.each(["optimizer.json", "optimizer.safetensors"])(
    "a damaged %s leaves weights and optimiser as they were",
    async (file) => {
      const folder = join(scratch, `damaged-${file}`);
      await engine.forwardBackward(batch, { type: "crossEntropy" });
      await engine.step(adam);
      await engine.save(folder);
      await engine.forwardBackward(batch, { type: "crossEntropy" });
      await engine.step(adam);
      const before = await engine.logprobs(batch);
      await writeFile(join(folder, file), "damaged");
      await expect(engine.load(folder)).rejects.toThrow(CheckpointError);
      expect(await engine.logprobs(batch)).toEqual(before);
    },
  );

  test("sampling and training in turns, as of large models, gives the same tokens and updates", async () => {
    const tokensOf = (completions: readonly Completion[]): unknown => completions.map(({ tokens }) => tokens);
    const contexts = [0, 1, 2].map((seed) => ({ text: "the river", seed }));
    const sampling = { maxTokens: 8, temperature: 1, topP: 1, topK: 0, stop: [] };
    const results = [];
    // What a plan says of so many tokens is beyond what is kept while the other works.
    for (const tokenBudget of [256, 1e7]) {
      const each = await tinyEngine({ options: { tokenBudget } });
      const reference = await each.snapshot();
      const found: unknown[] = [];
      for (let round = 0; round < 3; round++) {
        found.push(tokensOf(await each.policy().complete(contexts, sampling)));
        found.push(await reference.logprobs(batch.slice(0, 1)));
        // Without turns its prompt is still cached; log-probabilities differ in their last bits.
        found.push(tokensOf(await each.policy().complete(contexts.slice(0, 1), sampling)));
        await each.forwardBackward(batch.slice(0, 1), { type: "crossEntropy" });
        found.push(await each.step(adam));
      }
      await each.close();
      results.push(found);
    }
    expect(results[1]).toEqual(results[0]);
  });

  test("moments in a file make the same weights and checkpoints, bit for bit, and each continues the other's", async () => {
    const place = await mkdtemp(join(scratch, "moments-"));
    const inFile = await tinyEngine({ options: { momentsFolder: place } });
    const inMemory = await tinyEngine();
    const engines = [inMemory, inFile];
    const read = (index: number, file: string): Promise<Buffer> =>
      readFile(join(scratch, `state-${index}`, file));
    const update = async (each: EmbeddedEngine): Promise<void> => {
      await each.forwardBackward(batch, { type: "crossEntropy" });
      await each.step({ ...adam, weightDecay: 0.1, maxGradientNorm: 1 });
    };
    try {
      for (const each of engines) for (let step = 0; step < 3; step++) await update(each);
      for (const [index, each] of engines.entries()) {
        await mkdir(join(scratch, `state-${index}`));
        await each.save(join(scratch, `state-${index}`));
      }
      for (const file of ["model.safetensors", "optimizer.safetensors", "optimizer.json"])
        expect(await read(1, file)).toEqual(await read(0, file));
      await inMemory.load(join(scratch, "state-1"));
      await inFile.load(join(scratch, "state-0"));
      for (const each of engines) await update(each);
      expect(await inFile.logprobs(batch)).toEqual(await inMemory.logprobs(batch));
      expect(await readdir(place)).toEqual([]);
    } finally {
      for (const each of engines) await each.close();
    }
  });

  test("ids beyond the tokenizer's, as in a padded table, are never sampled", async () => {
    const padded = await tinyEngine({ model: { vocabularySize: 2 * tinyTokenizer.vocabularySize } });
    const contexts = Array.from({ length: 8 }, (_, seed) => ({ text: "the river", seed }));
    const sampling = { maxTokens: 20, temperature: 1, topP: 1, topK: 0, stop: ["never said"] };
    const completions = await padded.policy().complete(contexts, sampling);
    await padded.close();
    const tokens = completions.flatMap((completion) => completion.tokens ?? []);
    expect(Math.max(...tokens)).toBeLessThan(tinyTokenizer.vocabularySize);
  });
});
