// Models on disk: folders, shards and GGUF, each with its tokenizer; what does not belong together is refused.
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { CheckpointError, DataFormatError, FileError } from "../errors.ts";
import { EmbeddedEngine } from "./embedded-engine.ts";
import { openModelFiles } from "./model-files.ts";

const golden = (path: string): string => fileURLToPath(new URL(`../../test/golden/${path}`, import.meta.url));
const options = { threads: 1, tokenBudget: 1024, maxSlots: 2 };

interface GgufGolden {
  readonly tokens: readonly number[];
  readonly logprobs: readonly number[];
  readonly greedy: { readonly prompt: readonly number[]; readonly continuation: readonly number[] };
  readonly texts: readonly { readonly text: string; readonly ids: readonly number[] }[];
}

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-model-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
});

describe.each(["llama", "qwen2", "qwen3"])("a GGUF file of the family %s", (family) => {
  const open = async () => {
    const engine = await EmbeddedEngine.open(golden(`gguf/${family}.gguf`), options);
    onTestFinished(() => engine.close());
    const expected = JSON.parse(await readFile(golden(`gguf/${family}.json`), "utf8")) as GgufGolden;
    return { engine, expected };
  };

  test("computes what PyTorch does with the same weights", async () => {
    const { engine, expected } = await open();
    const inputs = Int32Array.from(expected.tokens.slice(0, -1));
    const targets = Int32Array.from(expected.tokens.slice(1));
    const [row] = await engine.logprobs([{ inputs, targets, weights: new Float32Array(39).fill(1) }]);
    const distances = expected.logprobs.map((value, i) => Math.abs(value - (row?.[i] as number)));
    expect(Math.max(...distances)).toBeLessThan(2e-5);
    const { prompt, continuation } = expected.greedy;
    const greedy = { maxTokens: 32, temperature: 0, topP: 1, topK: 0, stop: [] };
    const [completion] = await engine.policy().complete([{ text: "", tokens: prompt, seed: 1 }], greedy);
    expect(completion?.tokens).toEqual(continuation);
  });

  test("brings the tokenizer of its model", async () => {
    const { engine, expected } = await open();
    const { tokenizer } = engine;
    for (const { text, ids } of expected.texts) {
      expect({ text, ids: tokenizer.encode(text) }).toEqual({ text, ids });
      expect(tokenizer.decode(ids)).toBe(family === "llama" ? text : text.normalize("NFC"));
    }
    expect(tokenizer).toMatchObject({ endOfTextId: 2, paddingId: 0, vocabularySize: 270 });
    expect(tokenizer.chat?.template).toContain("add_generation_prompt");
    expect(tokenizer.beginOfTextId).toBeUndefined();
  });

  test("is saved as a folder that holds the same model and tokenizer", async () => {
    const { engine, expected } = await open();
    await engine.save(join(folder, "saved"));
    const copy = await EmbeddedEngine.open(join(folder, "saved"), options);
    onTestFinished(() => copy.close());
    expect(copy.model).toEqual(engine.model);
    expect(copy.tokenizer.hash).toBe(engine.tokenizer.hash);
    expect(copy.tokenizer.chat).toEqual(engine.tokenizer.chat);
    for (const { text, ids } of expected.texts) expect(copy.tokenizer.encode(text)).toEqual(ids);
  });
});

describe("the files of a model", () => {
  test("say what they are without their weights being read", async () => {
    for (const [path, expected] of [
      ["families/llama3", { format: "safetensors", dtype: "BF16", bytes: 37_888 }],
      ["families/qwen2", { format: "safetensors", dtype: "F16", bytes: 34_768 }],
      ["gguf/llama.gguf", { format: "gguf", dtype: "F16" }],
    ] as const) {
      const files = await openModelFiles(golden(path));
      onTestFinished(() => files.close());
      expect(files).toMatchObject(expected);
    }
  });

  test("may be one GGUF file in a folder, not several", async () => {
    await copyFile(golden("gguf/llama.gguf"), join(folder, "a.gguf"));
    const files = await openModelFiles(folder);
    onTestFinished(() => files.close());
    expect(files.path).toBe(join(folder, "a.gguf"));
    await copyFile(golden("gguf/llama.gguf"), join(folder, "b.gguf"));
    await expect(openModelFiles(folder)).rejects.toThrow(/holds 2 GGUF files \(a\.gguf, b\.gguf\); name one/);
  });

  test("that are none are a clear error", async () => {
    await expect(openModelFiles(folder)).rejects.toThrow(
      /holds no model: neither config\.json nor a \.gguf file/,
    );
    await expect(openModelFiles(join(folder, "absent"))).rejects.toThrow(FileError);
    await mkdir(join(folder, "run", "checkpoints"), { recursive: true });
    await expect(openModelFiles(join(folder, "run"))).rejects.toThrow(/it is a run; name one of the folders/);
    await writeFile(join(folder, "x.bin"), "not a model, but long enough for a header");
    await expect(openModelFiles(join(folder, "x.bin"))).rejects.toThrow(/does not start with GGUF/);
  });

  test("with the tokenizer of another model are refused", async () => {
    for (const file of ["config.json", "model.safetensors"])
      await copyFile(golden(`families/smollm2/${file}`), join(folder, file));
    await copyFile(golden("tokenizer/smollm2/tokenizer.json"), join(folder, "tokenizer.json"));
    const opening = EmbeddedEngine.open(folder, options);
    await expect(opening).rejects.toThrow(CheckpointError);
    await expect(opening).rejects.toThrow(
      /the tokenizer has \d+ ids, the model 61; use the tokenizer that belongs/,
    );
  });

  test("with a tokenizer of a kind that is not known are refused", async () => {
    const bytes = await readFile(golden("gguf/llama.gguf"));
    const at = bytes.indexOf("smollm", bytes.indexOf("tokenizer.ggml.pre"));
    bytes.write("strange".slice(0, 6), at);
    await writeFile(join(folder, "strange.gguf"), bytes);
    const opening = EmbeddedEngine.open(folder, options);
    await expect(opening).rejects.toThrow(DataFormatError);
    await expect(opening).rejects.toThrow(
      /tokenizer\.ggml\.pre is "strang", only gpt-2, smollm, llama-bpe, qwen2/,
    );
  });
});

describe("shards", () => {
  const copyShards = async (): Promise<Record<string, string>> => {
    const names = [1, 2].map((number) => `model-0000${number}-of-00002.safetensors`);
    for (const file of ["config.json", "model.safetensors.index.json", ...names])
      await copyFile(golden(`families/qwen3/${file}`), join(folder, file));
    const index = await readFile(join(folder, "model.safetensors.index.json"), "utf8");
    return JSON.parse(index).weight_map;
  };
  const writeIndex = (map: Record<string, string>) =>
    writeFile(join(folder, "model.safetensors.index.json"), JSON.stringify({ weight_map: map }));
  const norm = "model.norm.weight";

  test.each<[string, (map: Record<string, string>) => Record<string, string>, RegExp]>([
    ["one that is not there", (map) => ({ ...map, [norm]: "model-3.safetensors" }), /cannot read .*model-3/],
    [
      "a path out of the folder",
      (map) => ({ ...map, [norm]: "../model.safetensors" }),
      /the name of a \.safetensors file/,
    ],
    [
      "a tensor that no file has",
      (map) => ({ ...map, more: map[norm] as string }),
      /has no more, which .*index\.json lists/,
    ],
    ["a tensor less", ({ [norm]: _, ...map }) => map, /holds model\.norm\.weight, .* does not list it/],
    [
      "a tensor in the wrong file",
      (map) => ({ ...map, [norm]: "model-00001-of-00002.safetensors" }),
      /holds model\.norm\.weight, .* says that it lies in model-00001/,
    ],
    ["nothing", () => ({}), /lists no tensors/],
  ])("whose index lists %s are refused", async (_, change, problem) => {
    await writeIndex(change(await copyShards()));
    await expect(openModelFiles(folder)).rejects.toThrow(problem);
  });
});
