/** A model folder as a function from prompts to texts, for a simulated search engine. */
import type { Recipe } from "../config/recipe.ts";
import type { Simulator } from "../retrieval/simulated/simulated-retriever.ts";
import { sha256 } from "../shared/hash.ts";
import { hashOfModel } from "./base-model.ts";
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
