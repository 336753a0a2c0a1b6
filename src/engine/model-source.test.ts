import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { ConfigError, FileError } from "../errors.ts";
import { knownModels } from "./known-models.ts";
import { samplingBytes, trainingMemory } from "./memory-estimate.ts";
import { openModelFiles } from "./model-files.ts";
import { parameterCount } from "./model-options.ts";
import { locateModel, parseModelSource } from "./model-source.ts";

const golden = (path: string): string => fileURLToPath(new URL(`../../test/golden/${path}`, import.meta.url));

test("a source is a short name, a place on a hub, or a path", () => {
  const smollm2 = { repository: "HuggingFaceTB/SmolLM2-135M-Instruct", revision: "main" };
  expect(parseModelSource("smollm2-135m")).toEqual({ type: "hub", reference: smollm2 });
  expect(parseModelSource("SmolLM2-135M")).toEqual({ type: "hub", reference: smollm2 });
  const reference = { repository: "owner/name", revision: "v1" };
  expect(parseModelSource("hf:owner/name@v1")).toEqual({ type: "hub", reference });
  expect(parseModelSource("models/mine")).toEqual({ type: "path", path: "models/mine" });
  for (const wrong of ["hf:name", "hf:../x", " "]) expect(() => parseModelSource(wrong)).toThrow(ConfigError);
});

test("a model that is not here says how to get it", async () => {
  await expect(locateModel("smollm2-135m")).rejects.toThrow(
    /fetch it first \(forager models pull smollm2-135m\)/,
  );
  await expect(locateModel("smollm3")).rejects.toThrow(
    /there is no model at smollm3; .* or one of smollm2-135m/,
  );
  await expect(locateModel("smollm3")).rejects.toThrow(FileError);
  expect(await locateModel(golden("gguf"))).toBe(golden("gguf"));
});

test.each(["llama3", "qwen2"])("a model of the hub comes whole, in shards or not: %s", async (family) => {
  const cacheFolder = await mkdtemp(join(tmpdir(), "forager-hub-"));
  onTestFinished(() => rm(cacheFolder, { recursive: true, force: true }));
  const asked: string[] = [];
  const hub = { endpoint: "https://hub.invalid", cacheFolder, retries: 0, fetch: fakeHub(family, asked) };
  const folder = await locateModel("hf:owner/name@v1", hub);
  const [copy, original] = [await openModelFiles(folder), await openModelFiles(golden(`families/${family}`))];
  onTestFinished(() => Promise.all([copy.close(), original.close()]).then(() => undefined));
  expect(await copy.readParameters()).toEqual(await original.readParameters());
  const count = asked.length;
  expect(await locateModel("hf:owner/name@v1", { ...hub, offline: true })).toBe(folder);
  expect(asked).toHaveLength(count);
});

test("a model of the hub that is not supported is refused before its weights come", async () => {
  const cacheFolder = await mkdtemp(join(tmpdir(), "forager-hub-"));
  onTestFinished(() => rm(cacheFolder, { recursive: true, force: true }));
  const asked: string[] = [];
  const serve = fakeHub("llama3", asked);
  const gemma: typeof fetch = async (input) =>
    String(input).endsWith("config.json")
      ? new Response('{"model_type":"gemma3"}', { headers: { "x-repo-commit": "a".repeat(40) } })
      : await serve(input);
  const hub = { endpoint: "https://hub.invalid", cacheFolder, retries: 0, fetch: gemma };
  await expect(locateModel("hf:owner/name", hub)).rejects.toThrow(/only models of the families llama/);
  expect(asked.some((path) => path.includes("safetensors"))).toBe(false);
});

/** Serves the files of a golden model, and the tokenizer of another. */
function fakeHub(family: string, asked: string[]): typeof fetch {
  return async (input) => {
    const { pathname } = new URL(input instanceof Request ? input.url : input);
    asked.push(pathname);
    const name = pathname.split("/").at(-1) as string;
    const path = name === "tokenizer.json" ? `tokenizer/smollm2/${name}` : `families/${family}/${name}`;
    try {
      const bytes = await readFile(golden(path));
      return new Response(bytes, {
        headers: { "content-length": String(bytes.length), "x-repo-commit": "a".repeat(40) },
      });
    } catch {
      return new Response("", { status: 404 });
    }
  };
}

test("the table of known models has the parameter counts that their cards give", () => {
  const counts = Object.fromEntries(knownModels.map(({ name, model }) => [name, parameterCount(model)]));
  expect(counts).toEqual({
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "qwen2.5-0.5b": 494_032_768,
    "qwen3-0.6b": 596_049_920,
    "llama-3.2-1b": 1_235_814_400,
  });
});

test("memory grows with sequences and tokens, and training needs more than sampling", () => {
  for (const { model } of knownModels) {
    const sampling = samplingBytes(model, { slots: 1, tokens: 1024 });
    expect(sampling).toBeGreaterThan(8 * parameterCount(model));
    expect(samplingBytes(model, { slots: 8, tokens: 1024 })).toBeGreaterThan(sampling);
    const parameters = parameterCount(model);
    const training = (tokens: number): number =>
      trainingMemory(
        { model, parameters, trained: parameters },
        { tokens, time: 1024, keptLayers: model.layers },
      ).peak;
    expect(training(1024)).toBeGreaterThan(sampling);
    expect(training(2048)).toBeGreaterThan(training(1024));
  }
});
