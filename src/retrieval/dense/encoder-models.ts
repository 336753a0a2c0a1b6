/**
 * Known text encoders as data: how the token vectors become one vector and what is put before a query or a passage.
 * The values are those of the models' own cards and sentence-transformers settings. A wrong prefix or pooling gives
 * no error, only worse results, so a model that is not listed must declare its own (`encoderOptionsSchema`).
 */
import { z } from "zod";

export const poolingSchema = z.enum(["mean", "cls", "last", "given"]);
/** Mean over tokens, first token, last token, or a sentence vector that the model itself gives. */
export type Pooling = z.output<typeof poolingSchema>;

/** How a model wants its text and how its output is read. */
export interface EncoderRecipe {
  readonly pooling: Pooling;
  readonly queryPrefix: string;
  readonly passagePrefix: string;
  /** Scale every vector to length 1, so that the inner product is the cosine. */
  readonly normalize: boolean;
  /** Tokens of a text at most, special tokens included; what is longer is cut. */
  readonly maxTokens: number;
}

export interface KnownEncoder extends EncoderRecipe {
  /** `owner/name` on the hub. */
  readonly name: string;
  readonly dimensions: number;
}

const plain = { queryPrefix: "", passagePrefix: "", normalize: true, maxTokens: 512 } as const;
const e5 = { ...plain, pooling: "mean", queryPrefix: "query: ", passagePrefix: "passage: " } as const;
const instruction = "Represent this sentence for searching relevant passages: ";
const instructed = { ...plain, pooling: "cls", queryPrefix: instruction } as const;
const mean = { ...plain, pooling: "mean" } as const;
const nomic = {
  ...mean,
  queryPrefix: "search_query: ",
  passagePrefix: "search_document: ",
  maxTokens: 2048,
} as const;

export const knownEncoders: readonly KnownEncoder[] = [
  { name: "intfloat/e5-small-v2", dimensions: 384, ...e5 },
  { name: "intfloat/e5-base-v2", dimensions: 768, ...e5 },
  { name: "intfloat/e5-large-v2", dimensions: 1024, ...e5 },
  { name: "intfloat/multilingual-e5-small", dimensions: 384, ...e5 },
  { name: "intfloat/multilingual-e5-base", dimensions: 768, ...e5 },
  { name: "intfloat/multilingual-e5-large", dimensions: 1024, ...e5 },
  { name: "BAAI/bge-small-en-v1.5", dimensions: 384, ...instructed },
  { name: "BAAI/bge-base-en-v1.5", dimensions: 768, ...instructed },
  { name: "BAAI/bge-large-en-v1.5", dimensions: 1024, ...instructed },
  { name: "BAAI/bge-m3", dimensions: 1024, ...plain, pooling: "cls", maxTokens: 8192 },
  { name: "thenlper/gte-small", dimensions: 384, ...mean },
  { name: "thenlper/gte-base", dimensions: 768, ...mean },
  { name: "thenlper/gte-large", dimensions: 1024, ...mean },
  { name: "Alibaba-NLP/gte-base-en-v1.5", dimensions: 768, ...plain, pooling: "cls", maxTokens: 8192 },
  { name: "Alibaba-NLP/gte-large-en-v1.5", dimensions: 1024, ...plain, pooling: "cls", maxTokens: 8192 },
  { name: "sentence-transformers/all-MiniLM-L6-v2", dimensions: 384, ...mean, maxTokens: 256 },
  { name: "sentence-transformers/all-MiniLM-L12-v2", dimensions: 384, ...mean, maxTokens: 128 },
  { name: "sentence-transformers/all-mpnet-base-v2", dimensions: 768, ...mean, maxTokens: 384 },
  { name: "sentence-transformers/multi-qa-MiniLM-L6-cos-v1", dimensions: 384, ...mean },
  { name: "facebook/contriever", dimensions: 768, ...mean, normalize: false },
  { name: "facebook/contriever-msmarco", dimensions: 768, ...mean, normalize: false },
  { name: "nomic-ai/nomic-embed-text-v1.5", dimensions: 768, ...nomic },
  { name: "mixedbread-ai/mxbai-embed-large-v1", dimensions: 1024, ...instructed },
  { name: "Snowflake/snowflake-arctic-embed-xs", dimensions: 384, ...instructed },
  { name: "Snowflake/snowflake-arctic-embed-s", dimensions: 384, ...instructed },
  { name: "Snowflake/snowflake-arctic-embed-m", dimensions: 768, ...instructed },
];

const variant = /[-_.](?:int8|uint8|q8|q4|quantized|fp16|fp32|f16|f32|onnx|o[1-4])$/;

/**
 * The known model that `name` means: `owner/name`, a bare name, or the name of a folder, whatever its case and
 * with endings such as `-int8` or `-onnx`. Undefined when there is none.
 */
export function findKnownEncoder(name: string): KnownEncoder | undefined {
  const wanted = withoutVariant(name.toLowerCase());
  return knownEncoders.find((known) => {
    const full = known.name.toLowerCase();
    return full === wanted || full.split("/")[1] === wanted.split(/[/\\]|--/).pop();
  });
}

function withoutVariant(name: string): string {
  const shorter = name.replace(variant, "");
  return shorter === name ? name : withoutVariant(shorter);
}
