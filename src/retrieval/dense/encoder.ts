/**
 * The encoder contract: texts to vectors whose inner product says how well a passage answers a query. Models
 * implement it (`onnx-encoder.ts`) and so does the small one of the tests.
 */
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import type { EncoderRecipe } from "./encoder-models.ts";

/** What vectors depend on; an index keeps it, so that queries are never compared with another encoder's passages. */
export interface EncoderIdentity extends EncoderRecipe {
  /** Name for people, such as `bge-small-en-v1.5`; no part of the hash. */
  readonly name: string;
  /** SHA-256 of model, tokenizer and recipe. */
  readonly hash: string;
  readonly dimensions: number;
}

/** The part of a passage that is encoded. */
export interface PassageText {
  readonly title: string;
  readonly text: string;
}

export interface EncodeOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called as the work goes on with the share that is done, 0 to 1. */
  readonly onProgress?: ((share: number) => void) | undefined;
}

export interface Encoder {
  readonly identity: EncoderIdentity;
  /**
   * (queries × dimensions), row by row. The vector of a query does not depend on the others, beyond rounding.
   * Throws `RetrieverError` when the model fails, and the signal's reason.
   */
  encodeQueries(queries: readonly string[], options?: EncodeOptions): Promise<Float32Array>;
  /** (passages × dimensions), row by row. Title and text are one text, the title first. */
  encodePassages(passages: readonly PassageText[], options?: EncodeOptions): Promise<Float32Array>;
  close(): Promise<void>;
}

/** The hash of an identity from the hashes of the files and how they are used. */
export function encoderHash(files: readonly string[], recipe: EncoderRecipe, more: object = {}): string {
  const { pooling, queryPrefix, passagePrefix, normalize, maxTokens } = recipe;
  return sha256(canonicalJson({ files, pooling, queryPrefix, passagePrefix, normalize, maxTokens, ...more }));
}

/** What an encoder sees of a passage. */
export function passageText({ title, text }: PassageText): string {
  return title === "" ? text : `${title}\n${text}`;
}
