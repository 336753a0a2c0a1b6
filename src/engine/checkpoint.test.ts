import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CheckpointError, FileError } from "../errors.ts";
import { readModel, readOptimizer, writeModel, writeOptimizer } from "./checkpoint.ts";
import { tinyModel, tinyTokenizer } from "./engine.fixture.ts";
import { initializeParameters, type Parameter, zerosLike } from "./parameters.ts";
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
      rope_scaling: null,
      head_dim: 4,
      hidden_act: undefined,
      attention_bias: undefined,
      rms_norm_eps: undefined,
    });
    expect((await readModel(folder)).model).toEqual({ ...tinyModel, ropeBase: 5000, rmsEpsilon: 1e-6 });
  });

  test.each<[Readonly<Record<string, unknown>>, string, string]>([
    [{ model_type: "gpt2" }, "only models of the family llama are supported", "model_type"],
    [{ rope_scaling: { rope_type: "llama3", factor: 8 } }, "without scaling", "rope_scaling"],
    [
      { rope_parameters: { rope_type: "yarn", rope_theta: 1e4 } },
      "without scaling",
      "rope_parameters.rope_type",
    ],
    [{ hidden_act: "gelu" }, "only the activation silu is supported", "hidden_act"],
    [{ attention_bias: true }, "only attention without biases is supported", "attention_bias"],
    [{ mlp_bias: true }, "only layers without biases are supported", "mlp_bias"],
    [{ hidden_size: null }, "expected number, received null", "hidden_size"],
    [{ head_dim: 8 }, "head_dim 8 differs from hidden_size / heads = 4", "is not supported"],
    [{ num_attention_heads: 3 }, "width must be a multiple of heads", "config.json"],
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
    await expectRefused(`${last} has shape [8], [16] was expected from config.json`);
    await changeTensors("model.safetensors", { [last]: undefined });
    await expectRefused(`model.safetensors has no ${last}; it belongs to another model`);
    await rm(join(folder, "model.safetensors"));
    await expect(readModel(folder)).rejects.toThrow(/cannot read .*model\.safetensors: no such file/);
  });

  test("may hold tensors that the model does not need", async () => {
    await changeTensors("model.safetensors", { extra: { shape: [1], data: Float32Array.of(1) } });
    expect((await readModel(folder)).parameters).toEqual(parameters);
  });
});

describe("the optimiser's state", () => {
  const state = { step: 7, firstMoments: parameters, secondMoments: zerosLike(parameters) };

  test("comes back as it was written; a folder with a model alone has none", async () => {
    expect(await readOptimizer(folder, parameters)).toBeUndefined();
    await writeOptimizer(folder, state);
    expect(await readOptimizer(folder, parameters)).toEqual(state);
  });

  test("is refused where it is damaged or of another model", async () => {
    await writeOptimizer(folder, state);
    await changeTensors("optimizer.safetensors", { [`second.${last}`]: undefined });
    const call = readOptimizer(folder, parameters);
    await expect(call).rejects.toThrow(CheckpointError);
    await expect(call).rejects.toThrow(`has no second.${last} of shape [16]; use another checkpoint`);
    await writeFile(join(folder, "optimizer.json"), '{"step":-1}');
    await expect(readOptimizer(folder, parameters)).rejects.toThrow(CheckpointError);
  });
});
