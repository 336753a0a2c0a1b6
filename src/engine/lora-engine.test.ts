// The embedded engine with adapters: the contract of engines, its folders, and what it refuses.
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { CheckpointError, EngineError } from "../errors.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import { randomDatum, tinyEngine, tinyTokenizer } from "./engine.fixture.ts";
import { engineSuite } from "./engine.suite.ts";
import { type LoraOptions, loraOptionsSchema } from "./lora-options.ts";
import type { ModelOptions } from "./model-options.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

const lora: LoraOptions = loraOptionsSchema.parse({ rank: 3, alpha: 6 });
const options = { threads: 1, tokenBudget: 64, maxSlots: 4 };
const adam = {
  learningRate: 0.02,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0.1,
  maxGradientNorm: 1,
};
const batch = [30, 7, 52, 1, 18].map((length, seed) => {
  const datum = randomDatum(length, seed);
  datum.weights[length - 1] = 1;
  return datum;
});

let scratch: string;
let folders = 0;
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-lora-"));
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

const newFolder = (): string => join(scratch, `${++folders}`);

/** The folder of a fresh model. */
async function makeBase(model: Partial<ModelOptions> = {}, seed = 1): Promise<string> {
  const engine = await tinyEngine({ model, seed });
  const folder = newFolder();
  await engine.save(folder);
  await engine.close();
  return folder;
}

/** Adapters for a base, after one step: fresh ones change nothing, whatever their seed. */
async function trainedOnce(base: string, seed = 1, setting = lora): Promise<EmbeddedEngine> {
  const engine = await EmbeddedEngine.adapt(base, { lora: setting, seed }, options);
  await engine.forwardBackward(batch, { type: "crossEntropy" });
  await engine.step(adam);
  await engine.resetOptimizer();
  return engine;
}

describe.each<Partial<ModelOptions>>([{}, { tieEmbeddings: true, family: "qwen2" }, { family: "qwen3" }])(
  "beside a model with %j",
  (model) => {
    let base: string | undefined;
    engineSuite("the embedded engine with adapters", {
      create: async (seed) => {
        base ??= await makeBase(model);
        return await trainedOnce(base, seed);
      },
      createOther: async () => trainedOnce(await makeBase({ ...model, layers: 1 })),
      batch,
    });
  },
);

describe("EmbeddedEngine.adapt", () => {
  let base: string;
  beforeAll(async () => {
    base = await makeBase();
  });
  const opened = async (engine: Promise<EmbeddedEngine>): Promise<EmbeddedEngine> => {
    const it = await engine;
    onTestFinished(() => it.close());
    return it;
  };
  const trained = async (setting?: LoraOptions): Promise<EmbeddedEngine> =>
    await opened(trainedOnce(base, 1, setting));
  const saved = async (engine: EmbeddedEngine): Promise<string> => {
    const folder = newFolder();
    await engine.save(folder);
    return folder;
  };
  const expectRefused = async (call: Promise<unknown>, ...parts: readonly string[]): Promise<void> => {
    await expect(call).rejects.toThrow(CheckpointError);
    for (const part of parts) await expect(call).rejects.toThrow(part);
  };

  test("fresh adapters leave the model as it was, to the last bit", async () => {
    const plain = await opened(EmbeddedEngine.open(base, options));
    const engine = await opened(EmbeddedEngine.adapt(base, { lora, seed: 1 }, options));
    expect(await engine.logprobs(batch)).toEqual(await plain.logprobs(batch));
    expect(engine.parameterCount).toBe(plain.parameterCount + engine.trainableParameterCount);
    expect(plain.trainableParameterCount).toBe(plain.parameterCount);
    // Each layer: q and o 16 x 16, k and v 8 x 16, gate and up 24 x 16, down 16 x 24; rank 3.
    expect(engine.trainableParameterCount).toBe(2 * 3 * (2 * 32 + 2 * 24 + 3 * 40));
  });

  test("a checkpoint holds adapters and their optimiser, and nothing of the base", async () => {
    const engine = await trained();
    await engine.forwardBackward(batch, { type: "crossEntropy" });
    await engine.step(adam);
    const folder = await saved(engine);
    expect((await readdir(folder)).sort()).toEqual([
      "adapter_config.json",
      "adapter_model.safetensors",
      "base_model.json",
      "optimizer.json",
      "optimizer.safetensors",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
    expect(JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8"))).toMatchObject({
      peft_type: "LORA",
      base_model_name_or_path: base,
      r: 3,
      lora_alpha: 6,
      target_modules: ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    });
  });

  test("projections may be named by their whole path, as PEFT names them where all linear layers are wanted", async () => {
    const folder = await saved(await trained());
    const config = JSON.parse(await readFile(join(folder, "adapter_config.json"), "utf8"));
    const isAttention = (name: string): boolean => /[qkvo]_proj/.test(name);
    const paths = [0, 1].flatMap((layer) =>
      config.target_modules.map(
        (name: string) => `model.layers.${layer}.${isAttention(name) ? "self_attn" : "mlp"}.${name}`,
      ),
    );
    const before = await (await opened(EmbeddedEngine.open(folder, options))).logprobs(batch);
    await changeConfig(folder, { target_modules: paths });
    expect(await (await opened(EmbeddedEngine.open(folder, options))).logprobs(batch)).toEqual(before);
    await changeConfig(folder, { target_modules: ["self_attn.q_proj"] });
    await expectRefused(EmbeddedEngine.open(folder, options), "lora_A.weight, which adapters", folder);
  });

  test("a checkpoint opens as a model, with the adapters in its weights", async () => {
    const engine = await trained();
    const model = await opened(EmbeddedEngine.open(await saved(engine), options));
    const [expected, actual] = [await engine.logprobs(batch), await model.logprobs(batch)];
    for (const [d, row] of expected.entries())
      for (const [t, value] of row.entries()) expect(actual[d]?.[t]).toBeCloseTo(value, 4);
    expect(model.parameterCount).toBe(engine.parameterCount - engine.trainableParameterCount);
    expect(model.trainableParameterCount).toBe(model.parameterCount);
    expect(model.tokenizer.hash).toBe(tinyTokenizer.hash);
  });

  test("adapters of a checkpoint are trained further when a training starts from it", async () => {
    const engine = await trained();
    const again = await opened(EmbeddedEngine.adapt(await saved(engine), { lora, seed: 7 }, options));
    expect(await again.logprobs(batch)).toEqual(await engine.logprobs(batch));
    const config = JSON.parse(await readFile(join(await saved(again), "adapter_config.json"), "utf8"));
    expect(config.base_model_name_or_path).toBe(base);
    const other = { ...lora, rank: 2 };
    await expectRefused(
      EmbeddedEngine.adapt(await saved(engine), { lora: other, seed: 1 }, options),
      "adapters of other options",
      '"rank":3',
      '"rank":2',
    );
  });

  test("only the targets get adapters", async () => {
    const engine = await trained({ rank: 2, alpha: 2, targets: ["v_proj", "down_proj"] });
    expect(engine.trainableParameterCount).toBe(2 * 2 * (24 + 40));
  });

  test("a rank larger than a matrix is refused", async () => {
    const call = EmbeddedEngine.adapt(base, { lora: { ...lora, rank: 9 }, seed: 1 }, options);
    await expect(call).rejects.toThrow(EngineError);
    await expect(call).rejects.toThrow(
      "adapters of rank 9 are wanted, but model.layers.0.self_attn.k_proj.weight has only shape [8,16]",
    );
  });

  test("a base of equal shape with other weights is refused, and changes nothing", async () => {
    const engine = await trained();
    const before = await engine.logprobs(batch);
    const stranger = await opened(trainedOnce(await makeBase({}, 2)));
    await expectRefused(engine.load(await saved(stranger)), "adapters for other weights", base);
    expect(await engine.logprobs(batch)).toEqual(before);
    const folder = await saved(engine);
    await changeConfig(folder, { base_model_name_or_path: await makeBase({}, 2) });
    await expectRefused(EmbeddedEngine.open(folder, options), "adapters for other weights");
    await changeConfig(folder, { base_model_name_or_path: await makeBase({ layers: 1 }) });
    await expectRefused(EmbeddedEngine.open(folder, options), "adapters for a model of another shape");
  });

  test("a base that was moved away is missed by name, and found at its new place", async () => {
    const [home, elsewhere] = [await makeBase(), newFolder()];
    const engine = await opened(trainedOnce(home));
    const folder = await saved(engine);
    await rename(home, elsewhere);
    await expectRefused(
      EmbeddedEngine.open(folder, options),
      `the model ${home}, which is not there`,
      "base_model_name_or_path",
    );
    await changeConfig(folder, { base_model_name_or_path: elsewhere });
    await opened(EmbeddedEngine.open(folder, options));
    await changeConfig(folder, { base_model_name_or_path: "owner/name", revision: "v2" });
    await expectRefused(EmbeddedEngine.open(folder, options), "forager models pull hf:owner/name@v2");
    await changeConfig(folder, { base_model_name_or_path: await saved(engine) });
    await expectRefused(EmbeddedEngine.open(folder, options), "which holds adapters itself");
  });

  test("whole models and adapters are not taken for each other", async () => {
    const [engine, whole] = [await trained(), await opened(EmbeddedEngine.open(base, options))];
    await expectRefused(engine.load(base), "has no adapter_config.json, adapters were expected");
    await expectRefused(whole.load(await saved(engine)), "holds adapters (adapter_config.json)");
  });

  test.each<[Readonly<Record<string, unknown>>, string]>([
    [{ peft_type: "IA3" }, "only adapters of the type LORA"],
    [{ use_dora: true }, "use_dora true is not supported"],
    [{ use_rslora: true }, "use_rslora true is not supported"],
    [{ rank_pattern: { q_proj: 8 } }, 'rank_pattern {"q_proj":8} is not supported'],
    [{ modules_to_save: ["lm_head"] }, 'modules_to_save ["lm_head"] is not supported'],
    [{ layers_to_transform: [0] }, "layers_to_transform [0] is not supported"],
    [{ some_new_kind: 1 }, "some_new_kind 1 is not supported"],
    [{ bias: "all" }, "adapters with biases are not supported"],
    [{ init_lora_weights: "pissa" }, "ways of starting that change the base"],
    [{ target_modules: ["embed_tokens"] }, "only adapters of q_proj, k_proj"],
    [{ target_modules: ["q_proj"] }, "holds base_model.model.model.layers.0.self_attn.k_proj.lora_A.weight"],
    [{ r: 2 }, "lora_A.weight of shape [2,16] was expected, it has shape [3,16]"],
    [{ base_model_name_or_path: null }, "base_model_name_or_path"],
  ])("adapter_config.json with %j is refused", async (changes, problem) => {
    const folder = await saved(await trained());
    await changeConfig(folder, changes);
    await expectRefused(EmbeddedEngine.open(folder, options), problem, folder);
  });

  test("what says nothing about the mathematics is accepted in adapter_config.json", async () => {
    const folder = await saved(await trained());
    await changeConfig(folder, {
      peft_version: "0.21.2",
      lora_dropout: 0.05,
      megatron_core: "megatron.core",
      qalora_group_size: 16,
      loftq_config: {},
      exclude_modules: null,
      init_lora_weights: "gaussian",
    });
    await opened(EmbeddedEngine.open(folder, options));
    await rm(join(folder, "base_model.json"));
    await rm(join(folder, "tokenizer.json"));
    const model = await opened(EmbeddedEngine.open(folder, options));
    expect(model.tokenizer.hash).toBe(tinyTokenizer.hash);
  });

  test("adapters that are cut short, or of a model with fewer layers, are refused", async () => {
    const folder = await saved(await trained());
    const small = await saved(await opened(trainedOnce(await makeBase({ layers: 1 }))));
    await cp(join(small, "adapter_model.safetensors"), join(folder, "adapter_model.safetensors"));
    await expectRefused(
      EmbeddedEngine.open(folder, options),
      "layers.1.self_attn.q_proj.lora_A",
      "is missing",
    );
    const adapters = await readSafetensors(join(folder, "adapter_model.safetensors"));
    for (const { data } of adapters.values()) data.fill(Number.NaN);
    await writeSafetensors(join(folder, "adapter_model.safetensors"), adapters);
    await expectRefused(EmbeddedEngine.open(folder, options), "lora_A.weight holds NaN at 0");
    await writeFile(join(folder, "adapter_model.safetensors"), "damaged");
    await expectRefused(EmbeddedEngine.open(folder, options), "adapter_model.safetensors");
    await writeFile(join(folder, "base_model.json"), "{}");
    await expectRefused(EmbeddedEngine.open(folder, options), "base_model.json");
  });
});

/** Changes entries of `adapter_config.json`. */
async function changeConfig(folder: string, changes: Readonly<Record<string, unknown>>): Promise<void> {
  const path = join(folder, "adapter_config.json");
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, "utf8")), ...changes }));
}
