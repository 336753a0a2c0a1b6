/**
 * Which encoder made the vectors of an index folder, and how it is used: written beside them (`dense/encoder.json`), so that a
 * folder is searched without naming it again.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { FileError } from "../errors.ts";
import { exists, fileError } from "../shared/files.ts";
import type { HubOptions } from "../shared/hub.ts";
import type { Encoder } from "./dense/encoder.ts";
import { encoderOptionsSchema } from "./dense/encoder-options.ts";
import { locateModel } from "./dense/model-files.ts";
import { openEncoder } from "./dense/onnx-encoder.ts";

/** How a recipe or a flag names an ONNX model. */
export const onnxModelSchema = z
  .string()
  .min(1)
  .describe("Folder with an ONNX model and tokenizer.json, or hf:owner/name[@revision].");

/** An encoder and how it is used. */
export const encoderReferenceSchema = encoderOptionsSchema.extend({ model: onnxModelSchema });
export type EncoderReference = z.input<typeof encoderReferenceSchema>;

/** What opening needs of the world. */
export interface SearchWorld {
  readonly threads: number;
  /** Where models named `hf:…` come from. */
  readonly hub: HubOptions;
}

/** Folder of the vectors within an index folder. */
export function denseFolder(folder: string): string {
  return join(folder, "dense");
}

const ENCODER_FILE = "encoder.json";
const encoderFile = (folder: string): string => join(denseFolder(folder), ENCODER_FILE);

/** The file beside the vectors that says which encoder made them, for `buildDense`. */
export function encoderReferenceFile(encoder: EncoderReference): Readonly<Record<string, string>> {
  return { [ENCODER_FILE]: `${JSON.stringify(encoder, null, 2)}\n` };
}

/** Opens an encoder of a folder or the hub. */
export async function openEncoderReference(
  reference: EncoderReference,
  world: SearchWorld,
): Promise<Encoder> {
  const { model, ...options } = reference;
  const located = await locateModel(model, options.file, world.hub);
  return await openEncoder(located.folder, { ...options, threads: world.threads, name: located.name });
}

/** The encoder of the vectors of an index: the one named, used as when they were made where nothing else is said. */
export async function encoderOf(
  folder: string,
  named: EncoderReference | undefined,
): Promise<EncoderReference> {
  if (named !== undefined && !(await exists(encoderFile(folder)))) return named;
  const recorded = await readEncoderReference(folder);
  const given = Object.fromEntries(Object.entries(named ?? {}).filter(([, value]) => value !== undefined));
  return { ...recorded, ...given };
}

async function readEncoderReference(folder: string): Promise<EncoderReference> {
  const path = encoderFile(folder);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read which encoder made the vectors (${path}); name it with --encoder`, cause);
  }
  try {
    return encoderReferenceSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new FileError(`${path} is damaged; name the encoder with --encoder`, { cause });
  }
}
