/**
 * A cross-encoder from a folder with an ONNX model and a `tokenizer.json`: query and passage as one sequence
 * (`[CLS] query [SEP] passage [SEP]` or what the tokenizer makes of a pair), one number out. Models of two classes
 * count as the second minus the first.
 */
import { basename, join } from "node:path";
import { z } from "zod";
import { ConfigError, RetrieverError } from "../../errors.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import type { Reranker, RerankPair } from "../rerank.ts";
import { passageText } from "./encoder.ts";
import { encoderOptionsSchema, findModelFile } from "./encoder-options.ts";
import { OnnxModel } from "./onnx-model.ts";
import { inTurns, TokenIds } from "./token-ids.ts";

export const crossEncoderOptionsSchema = encoderOptionsSchema.pick({ batchSize: true, file: true }).extend({
  maxTokens: z
    .int()
    .min(8)
    .max(65_536)
    .default(512)
    .describe("Tokens of query and passage together at most."),
});
export type CrossEncoderOptions = z.input<typeof crossEncoderOptionsSchema>;

export interface OpenCrossEncoderOptions extends CrossEncoderOptions {
  readonly threads: number;
  /** Name for people; that of the folder when absent. */
  readonly name?: string;
}

export interface CrossEncoder extends Reranker {
  close(): Promise<void>;
}

/** Opens the cross-encoder in `folder`. Throws `FileError`, `ConfigError` and `RetrieverError` like `openEncoder`. */
export async function openCrossEncoder(
  folder: string,
  options: OpenCrossEncoderOptions,
): Promise<CrossEncoder> {
  const { threads, name = basename(folder), ...rest } = options;
  const parsed = crossEncoderOptionsSchema.safeParse(rest);
  if (!parsed.success) throw new ConfigError(`options of the reranker: ${z.prettifyError(parsed.error)}`);
  const { maxTokens, file } = parsed.data;
  const path = await findModelFile(folder, file);
  const tokens = await TokenIds.open(join(folder, "tokenizer.json"), maxTokens);
  const model = await OnnxModel.open(path, threads);
  const output = model.outputs.find(({ rank, width }) => rank === 2 && (width === 1 || width === 2));
  if (output === undefined) {
    await model.close();
    const found = model.outputs.map(
      (each) => `${each.name} (${each.rank} dimensions, ${each.width ?? "?"} wide)`,
    );
    throw new RetrieverError(
      `${path} is no cross-encoder: expected an output of one or two numbers a pair, got ${found.join(", ")}; an encoder of single texts cannot rerank`,
    );
  }
  const batchSize = parsed.data.batchSize ?? (model.isDynamic ? 1 : 8);
  const made = [model.hash, tokens.hash, maxTokens, ...(model.isDynamic ? [batchSize] : [])];
  return {
    identity: { name, hash: sha256(canonicalJson(made)) },
    score: async (pairs, signal) => {
      signal?.throwIfAborted();
      const encode = ({ query, passage }: RerankPair) => tokens.encodePair(query, passageText(passage));
      const sequences = await inTurns(pairs, encode, signal);
      const scores = new Float32Array(pairs.length);
      await model.run(sequences, {
        batchSize,
        output: output.name,
        signal,
        onBatch: ({ positions, data }) => {
          for (const [row, position] of positions.entries())
            scores[position] =
              output.width === 1
                ? (data[row] as number)
                : (data[2 * row + 1] as number) - (data[2 * row] as number);
        },
      });
      return scores;
    },
    close: () => model.close(),
  };
}
