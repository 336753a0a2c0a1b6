import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CheckpointError, FileError } from "../errors.ts";
import type { OptimizerState } from "./adam.ts";
import { readModel, readModelConfig, readOptimizer, writeModel, writeOptimizer } from "./checkpoint.ts";
import { tinyModel, tinyTokenizer } from "./engine.fixture.ts";
import { type CreateMoments, momentsInFile, momentsInMemory } from "./moments.ts";
import { initializeParameters, type Parameter } from "./parameters.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

const parameters = initializeParameters(tinyModel, 1);
const described = { model: tinyModel, tokenizer: tinyTokenizer };
const last = "model.norm.weight";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-checkpoint-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeModel(folder, described, parameters);
});

const configPath = (): string => join(folder, "config.json");
const readConfig = async () => JSON.parse(await readFile(configPath(), "utf8"));

/** Changes entries of `config.json`; an entry of undefined is removed. */
async function changeConfig(changes: Readonly<Record<string, unknown>>): Promise<void> {
  await writeFile(configPath(), JSON.stringify({ ...(await readConfig()), ...changes }));
}

/** Changes tensors of a file; one of undefined is removed. */
async function changeTensors(file: string, changes: Readonly<Record<string, Parameter | undefined>>) {
  const tensors = new Map(await readSafetensors(join(folder, file)));
  for (const [name, tensor] of Object.entries(changes)) {
    if (tensor) tensors.set(name, tensor);
    else tensors.delete(name);
  }
  await writeSafetensors(join(folder, file), tensors);
}

async function expectRefused(...parts: readonly string[]): Promise<void> {
  const call = readModel(folder);
  await expect(call).rejects.toThrow(CheckpointError);
  for (const part of [folder, ...parts]) await expect(call).rejects.toThrow(part);
}

describe("a model folder", () => {
  test("comes back as it was written, with tied embeddings too", async () => {
    expect(await readModel(folder)).toEqual({ model: tinyModel, parameters });
    const tied = { ...tinyModel, tieEmbeddings: true };
    const tiedParameters = initializeParameters(tied, 2);
    await writeModel(folder, { model: tied, tokenizer: tinyTokenizer }, tiedParameters);
    expect(await readModel(folder)).toEqual({ model: tied, parameters: tiedParameters });
  });

  test("has a configuration as Hugging Face writes it, with the ids that end and fill a text", async () => {
    expect(await readConfig()).toMatchObject({
      architectures: ["LlamaForCausalLM"],
      model_type: "llama",
      hidden_size: 16,
      num_hidden_layers: 2,
      num_key_value_heads: 2,
      rope_theta: 10_000,
      bos_token_id: null,
      eos_token_id: tinyTokenizer.endOfTextId,
      pad_token_id: tinyTokenizer.paddingId,
    });
  });

  test("is read as transformers 5 writes it, and with what the family takes for granted left out", async () => {
    await changeConfig({
      rope_theta: undefined,
      rope_parameters: { rope_type: "default", rope_theta: 5000 },
      rope_scaling: {},
      is_causal: true,
      chunk_size_feed_forward: 0,
      head_dim: 4,
      hidden_act: undefined,
      attention_bias: undefined,
      rms_norm_eps: undefined,
    });
    expect((await readModel(folder)).model).toEqual({ ...tinyModel, ropeBase: 5000, rmsEpsilon: 1e-6 });
  });

  test.each<[Readonly<Record<string, unknown>>, string, string]>([
    [
      { model_type: "gpt2" },
      "only models of the families llama, mistral, qwen2, qwen3 are supported",
      "model_type",
    ],
    [{ rope_scaling: { rope_type: "yarn", factor: 8 } }, "without scaling", 'rope_scaling.rope_type "yarn"'],
    [{ rope_scaling: { type: "linear", factor: 2 } }, "without scaling", 'rope_scaling.rope_type "linear"'],
    [{ rope_scaling: { rope_type: "llama3", factor: 8 } }, "expected number", "low_freq_factor"],
    [
      { rope_parameters: { rope_theta: 1e4, partial_rotary_factor: 0.5 } },
      "is not supported",
      "rope_parameters.partial_rotary_factor 0.5",
    ],
    [
      { rope_parameters: { rope_type: "yarn", rope_theta: 1e4 } },
      "without scaling",
      "rope_parameters.rope_type",
    ],
    [
      { rope_parameters: { rope_theta: 1e4 }, rope_scaling: { rope_type: "yarn", factor: 4 } },
      "both say how heads are rotated",
      'rope_scaling {"rope_type":"yarn"',
    ],
    [
      { rope_parameters: { full_attention: { rope_theta: 1e6 } } },
      "only one rotation for all layers",
      "rope_parameters.full_attention",
    ],
    [{ is_causal: false }, "changes what the model computes", "is_causal false"],
    [{ hidden_act: "gelu" }, "only the activation silu is supported", "hidden_act"],
    [{ attention_bias: true }, "only attention without biases is supported", "attention_bias"],
    [
      { model_type: "mistral", sliding_window: 64 },
      "is shorter than max_position_embeddings 640",
      "sliding_window 64",
    ],
    [
      { model_type: "qwen2", use_sliding_window: true, sliding_window: 64 },
      "is shorter than max_position_embeddings 640",
      "sliding_window 64",
    ],
    [
      { model_type: "qwen3", layer_types: ["full_attention", "sliding_attention"] },
      "only full_attention is supported",
      "layer_types has sliding_attention",
    ],
    [{ model_type: "qwen2", num_key_value_heads: null }, "which a qwen2 needs", "num_key_value_heads"],
    [{ partial_rotary_factor: 0.5 }, "changes what the model computes", "partial_rotary_factor 0.5"],
    [{ rope_interleaved: true }, "changes what the model computes", "rope_interleaved true"],
    [{ attention_dropout: 0.1 }, "changes what the model computes", "attention_dropout 0.1"],
    [{ embedding_multiplier: 12 }, "changes what the model computes", "embedding_multiplier 12"],
    [{ num_local_experts: 8 }, "changes what the model computes", "num_local_experts 8"],
    [{ quantization_config: { bits: 4 } }, "changes what the model computes", "quantization_config"],
    [{ some_new_norm: "l2" }, "changes what the model computes", "some_new_norm"],
    [{ mlp_bias: true }, "only layers without biases are supported", "mlp_bias"],
    [{ hidden_size: null }, "expected number, received null", "hidden_size"],
    [{ head_dim: 8 }, "q_proj.weight has shape [16,16], [32,16] was expected", "model.safetensors"],
    [{ num_attention_heads: 3 }, "heads must be a multiple of keyValueHeads", "config.json"],
  ])("of %j is refused", async (changes, problem, place) => {
    await changeConfig(changes);
    await expectRefused(problem, place);
  });

  test("with a configuration that is not JSON, or not there, is refused", async () => {
    await writeFile(configPath(), "{");
    await expectRefused("config.json is not JSON");
    await rm(configPath());
    await expect(readModel(folder)).rejects.toThrow(FileError);
    await expect(readModel(folder)).rejects.toThrow(/cannot read .*config\.json: no such file/);
  });

  test("with weights that are not there, lack a tensor or have one of another shape, is refused", async () => {
    await changeTensors("model.safetensors", { [last]: { shape: [8], data: new Float32Array(8) } });
    await expectRefused(`${last} has shape [8], [16] was expected from the configuration`);
    await changeTensors("model.safetensors", { [last]: undefined });
    await expectRefused(`model.safetensors has no ${last}; it belongs to another model`);
    await rm(join(folder, "model.safetensors"));
    await expect(readModel(folder)).rejects.toThrow(/cannot read .*model\.safetensors: no such file/);
  });

  test.each([Number.NaN, Number.NEGATIVE_INFINITY])("with a weight of %d is refused", async (value) => {
    const data = new Float32Array(16).fill(1, 0, 15).fill(value, 15);
    await changeTensors("model.safetensors", { [last]: { shape: [16], data } });
    await expectRefused(`${last} holds ${value} at 15: the file is damaged, or its training diverged`);
  });

  test("may hold fields that say nothing about the mathematics, or switch it off", async () => {
    await changeConfig({
      model_type: "qwen2",
      use_sliding_window: false,
      sliding_window: 8,
      max_window_layers: 1,
      attention_dropout: 0,
      rope_interleaved: false,
      num_experts: 0,
      _attn_implementation: "sdpa",
      pretraining_tp: 2,
    });
    expect(await readModelConfig(folder)).toEqual({ ...tinyModel, family: "qwen2" });
  });

  test("may hold a copy of tied embeddings and old rotary frequencies, and nothing else", async () => {
    const tied = { ...tinyModel, tieEmbeddings: true };
    const tiedParameters = initializeParameters(tied, 2);
    await writeModel(folder, { model: tied, tokenizer: tinyTokenizer }, tiedParameters);
    const embeddings = tiedParameters.get("model.embed_tokens.weight") as Parameter;
    await changeTensors("model.safetensors", {
      "lm_head.weight": embeddings,
      "model.layers.0.self_attn.rotary_emb.inv_freq": { shape: [2], data: Float32Array.of(1, 0.01) },
    });
    expect((await readModel(folder)).parameters).toEqual(tiedParameters);
    await changeTensors("model.safetensors", {
      "lm_head.weight": { ...embeddings, data: embeddings.data.map((x) => x + 1) },
    });
    await expectRefused("lm_head.weight differs from model.embed_tokens.weight");
    await changeTensors("model.safetensors", {
      "lm_head.weight": undefined,
      "model.layers.2.mlp.up_proj.weight": { shape: [1], data: Float32Array.of(1) },
    });
    await expectRefused(
      "holds model.layers.2.mlp.up_proj.weight, which a model of its configuration does not have",
    );
  });
});

describe("the optimiser's state", () => {
  const read = (create = momentsInMemory) => readOptimizer(folder, parameters, create);

  /** Moments that differ from number to number. */
  async function someState(create: CreateMoments): Promise<OptimizerState> {
    const moments = await create(parameters);
    for (const [name, { data }] of parameters)
      await moments.change(name, ({ start, first, second }) => {
        first.set(data.subarray(start, start + first.length));
        for (const [index, value] of first.entries()) second[index] = value * value;
      });
    return { step: 7, moments };
  }

  test("comes back as it was written; a folder with a model alone has none", async () => {
    expect(await read()).toBeUndefined();
    await writeOptimizer(folder, await someState(momentsInMemory));
    const state = await read();
    expect(state?.step).toBe(7);
    await writeOptimizer(join(folder, "again"), state as OptimizerState);
    const file = "optimizer.safetensors";
    expect(await readFile(join(folder, "again", file))).toEqual(await readFile(join(folder, file)));
  });

  test("in a file is written and read as in memory, whatever the length of a piece, and leaves nothing behind", async () => {
    const inFile = momentsInFile(folder, 100);
    const before = await readdir(folder);
    const state = await someState(inFile);
    expect(await readdir(folder)).toEqual(before);
    await writeOptimizer(join(folder, "memory"), await someState(momentsInMemory));
    await writeOptimizer(join(folder, "file"), state);
    await state.moments.close();
    const bytes = (name: string): Promise<Buffer> => readFile(join(folder, name, "optimizer.safetensors"));
    expect(await bytes("file")).toEqual(await bytes("memory"));
    const again = await readOptimizer(join(folder, "memory"), parameters, inFile);
    await writeOptimizer(join(folder, "again"), again as OptimizerState);
    await again?.moments.close();
    expect(await bytes("again")).toEqual(await bytes("memory"));
  });

  test("is refused where it is damaged or of another model", async () => {
    await writeOptimizer(folder, await someState(momentsInMemory));
    await changeTensors("optimizer.safetensors", { [`second.${last}`]: undefined });
    const call = read();
    await expect(call).rejects.toThrow(CheckpointError);
    await expect(call).rejects.toThrow(
      `has no second.${last} of type F32 and shape [16]; use another checkpoint`,
    );
    await writeFile(join(folder, "optimizer.json"), '{"step":-1}');
    await expect(read()).rejects.toThrow(CheckpointError);
  });
});
