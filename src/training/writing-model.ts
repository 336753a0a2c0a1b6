/** A model folder as a function from prompts to texts, for a simulated search engine. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import type { Simulator } from "../retrieval/simulated/simulated-retriever.ts";
import { sha256 } from "../shared/hash.ts";
import { engineOptions } from "./engine-options.ts";

export interface WritingModelOptions {
  readonly temperature: number;
  readonly maxTokens: number;
  readonly engine: Recipe["engine"];
}

/** Opens the model in `folder`. Equal prompts get equal texts, sampled or not. Throws `CheckpointError`, `FileError`. */
export async function writingModel(
  folder: string,
  { temperature, maxTokens, engine }: WritingModelOptions,
): Promise<Simulator & { close(): Promise<void> }> {
  const { EmbeddedEngine } = await import("../engine/embedded-engine.ts");
  const model = await EmbeddedEngine.open(folder, engineOptions({ engine, stages: [] }));
  const sampling = { maxTokens, temperature, topP: 1, topK: 0, stop: [] };
  return {
    model: `${await hashOfModel(folder)} (temperature ${temperature}, at most ${maxTokens} tokens)`,
    generate: async (prompts, signal) => {
      const contexts = prompts.map((text) => ({
        text,
        tokens: model.tokenizer.encode(text),
        seed: Number.parseInt(sha256(text).slice(0, 8), 16),
      }));
      const completions = await model.policy().complete(contexts, sampling, signal);
      return completions.map(({ text }) => text);
    },
    close: () => model.close(),
  };
}

/** SHA-256 over the files of a model, so that its results are known again wherever it lies. */
async function hashOfModel(path: string): Promise<string> {
  const isFolder = (await stat(path)).isDirectory();
  const files = isFolder ? (await readdir(path)).sort().map((file) => join(path, file)) : [path];
  const hash = createHash("sha256");
  for (const file of files) {
    if (!(await stat(file)).isFile()) continue;
    hash.update(`${basename(file)}\n`);
    for await (const piece of createReadStream(file)) hash.update(piece as Buffer);
  }
  return hash.digest("hex");
}
