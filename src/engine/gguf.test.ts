// GGUF against the Python packages `gguf` and `transformers`: test/golden/gguf/ holds files and the script that made them.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { CheckpointError, FileError } from "../errors.ts";
import { GgufFile } from "./gguf.ts";
import { readGgufHeader } from "./gguf-header.ts";
import { modelFromGguf } from "./gguf-model.ts";
import { huggingFaceName, separateHalves } from "./gguf-names.ts";
import { ggufFormats } from "./gguf-quantization.ts";
import { type GgufField, writeGguf } from "./gguf-writer.ts";
import { readParameters } from "./read-parameters.ts";
import { readSafetensors } from "./safetensors.ts";
import { type BlockFormat, OpenFile } from "./tensor-file.ts";

const golden = (name: string): string =>
  fileURLToPath(new URL(`../../test/golden/gguf/${name}`, import.meta.url));

test("every supported type is decoded bit for bit as the Python package does", async () => {
  const expected = await readSafetensors(golden("blocks.safetensors"));
  const file = await OpenFile.open(golden("blocks.gguf"));
  onTestFinished(() => file.close());
  const { tensors } = await readGgufHeader(file);
  expect([...tensors.keys()].sort()).toEqual(Object.keys(ggufFormats).sort());
  for (const [name, entry] of tensors) {
    expect(entry.dtype).toBe(name);
    expect(await file.readValues(entry, ggufFormats[name] as BlockFormat)).toEqual(expected.get(name));
  }
});

describe("a model", () => {
  test.each([
    [
      "llama",
      {
        tieEmbeddings: false,
        ropeScaling: {
          factor: 8,
          lowFrequencyFactor: 1,
          highFrequencyFactor: 4,
          originalContextLength: 8192,
        },
      },
    ],
    ["qwen2", { tieEmbeddings: true, family: "qwen2" }],
    ["qwen3", { tieEmbeddings: false, family: "qwen3", headSize: 24 }],
  ])("of the family %s has the shape that its metadata say", async (name, expected) => {
    const file = await GgufFile.open(golden(`${name}.gguf`));
    onTestFinished(() => file.close());
    const model = await modelFromGguf(file);
    const shape = { layers: 2, width: 32, heads: 2, keyValueHeads: 1, feedForward: 32, vocabularySize: 270 };
    expect(model).toEqual({ ...shape, contextLength: 64, ropeBase: 10_000, rmsEpsilon: 1e-6, ...expected });
    await readParameters(model, file);
  });

  test("has its tensors under the names of Hugging Face", () => {
    expect(huggingFaceName("blk.12.attn_q_norm.weight")).toBe("model.layers.12.self_attn.q_norm.weight");
    expect(huggingFaceName("blk.0.attn_k.bias")).toBe("model.layers.0.self_attn.k_proj.bias");
    expect(huggingFaceName("output.weight")).toBe("lm_head.weight");
    for (const name of ["blk.0.ffn_gate_exps.weight", "blk.x.attn_q.weight", "position_embd.weight"])
      expect(huggingFaceName(name)).toBeUndefined();
  });

  test("has the halves of each head apart again", () => {
    const parameter = { shape: [8, 1], data: Float32Array.of(0, 10, 1, 11, 2, 12, 3, 13) };
    separateHalves(parameter, 2);
    expect(parameter.data).toEqual(Float32Array.of(0, 1, 10, 11, 2, 3, 12, 13));
  });
});

describe("a file that cannot be used is refused", () => {
  /** The file of a family with bytes replaced where `find` is found. */
  async function changed(name: string, find: string | Buffer, replacement: Buffer): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "forager-gguf-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const bytes = await readFile(golden(`${name}.gguf`));
    const at = bytes.indexOf(find);
    expect(at).toBeGreaterThanOrEqual(0);
    replacement.copy(bytes, at + find.length);
    const path = join(folder, "changed.gguf");
    await writeFile(path, bytes);
    return path;
  }
  async function expectRefused(path: string, ...parts: readonly string[]): Promise<void> {
    const opening = GgufFile.open(path).then(async (file) => {
      onTestFinished(() => file.close());
      await modelFromGguf(file);
    });
    await expect(opening).rejects.toThrow(CheckpointError);
    for (const part of [path, ...parts]) await expect(opening).rejects.toThrow(part);
  }
  const uint32 = (...values: readonly number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);

  test("when it was cut anywhere", async () => {
    const bytes = await readFile(golden("llama.gguf"));
    const folder = await mkdtemp(join(tmpdir(), "forager-gguf-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "cut.gguf");
    for (const length of [0, 3, 23, 24, 100, 3000, 12_000, bytes.length - 33]) {
      await writeFile(path, bytes.subarray(0, length));
      await expectRefused(path, "is no usable GGUF file: ", "use another copy");
    }
  });

  test("when it is no GGUF file, or one of another version", async () => {
    await expectRefused(golden("blocks.safetensors"), "it does not start with GGUF");
    await expectRefused(
      await changed("llama", "GGUF", uint32(2)),
      "of version 2, only version 3 is supported",
    );
    await expect(GgufFile.open(golden("absent.gguf"))).rejects.toThrow(FileError);
    await expect(GgufFile.open(golden("."))).rejects.toThrow(CheckpointError);
  });

  test("when its counts and lengths are lies", async () => {
    await expectRefused(await changed("llama", uint32(0x46554747, 3), uint32(0, 1)), "more than fit");
    await expectRefused(
      await changed("llama", "tokenizer.ggml.tokens", uint32(9, 8, 0, 9)),
      "items of tokenizer.ggml.tokens",
    );
    await expectRefused(
      await changed("llama", "llama.block_count", uint32(77)),
      "llama.block_count has a value of the unknown type 77",
    );
  });

  test("when a tensor has a type or a shape that is not supported", async () => {
    const name = "blk.1.ffn_up.weight";
    // After the name: rank 2, two dimensions of eight bytes, type, offset.
    await expectRefused(
      await changed("llama", name, uint32(2, 32, 0, 32, 0, 6)),
      `${name} holds values of type Q5_0, only F32, F16, Q8_0, Q4_0, Q4_1, Q4_K, Q5_K, Q6_K are supported`,
    );
    await expectRefused(
      await changed("llama", name, uint32(2, 32, 0, 32, 0, 12)),
      `a row of ${name} has 32 values, no multiple of the 256 of a Q4_K block`,
    );
    await expectRefused(await changed("llama", name, uint32(2, 32, 0, 64, 0, 1)), "overlaps");
    await expectRefused(await changed("llama", name, uint32(9)), `${name} has 9 dimensions`);
  });

  test("when a field changes what is computed", async () => {
    await expectRefused(
      await changed(
        "llama",
        "general.architecture",
        Buffer.from(`${uint32(8, 5, 0).toString("latin1")}gemma`, "latin1"),
      ),
      'general.architecture is "gemma"; only llama, qwen2, qwen3 are supported',
    );
    await expectRefused(
      await changed("llama", "llama.rope.dimension_count", uint32(4, 8)),
      "llama.rope.dimension_count 8 is not supported; only 16 is",
    );
    await expectRefused(
      await changed("qwen3", "qwen3.attention.value_length", uint32(4, 12)),
      "qwen3.attention.value_length 12 is not supported; only 24 is",
    );
    // The field general.license, whose name has 15 bytes, under another name.
    await expectRefused(
      await changed("llama", uint32(15, 0), Buffer.from("llama.foo_scale")),
      "llama.foo_scale",
      "it may change what the model computes",
    );
  });

  test("when it is one of several files of a model", async () => {
    const folder = await mkdtemp(join(tmpdir(), "forager-gguf-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const path = join(folder, "model-00001-of-00002.gguf");
    const metadata = new Map<string, GgufField>([
      ["general.architecture", { type: "string", value: "llama" }],
      ["split.count", { type: "uint32", value: 2 }],
    ]);
    await writeGguf(path, { metadata, tensors: [] });
    await expectRefused(path, "is one of the 2 files of a model; join them");
  });

  test("when the model lacks a tensor of its shape", async () => {
    const file = await GgufFile.open(await changed("llama", "llama.block_count", uint32(4, 3)));
    onTestFinished(() => file.close());
    await expect(readParameters(await modelFromGguf(file), file)).rejects.toThrow(
      /has no model\.layers\.2\.input_layernorm\.weight/,
    );
  });
});
