/**
 * The shape of the model in a GGUF file, from its metadata. Fields of the architecture that we do not read must be
 * harmless ones: any other is refused by name, since each exists because it changes what is computed.
 */
import { CheckpointError } from "../errors.ts";
import type { GgufFile } from "./gguf.ts";
import { completeModel } from "./model-config.ts";
import type { ModelFamily, ModelOptions, RopeScaling } from "./model-options.ts";
import { frequencyDivisor, rotaryFrequencies } from "./rotary-tables.ts";

/** Mistral models are of the architecture llama in GGUF. */
const families: Readonly<Record<string, ModelFamily>> = { llama: "llama", qwen2: "qwen2", qwen3: "qwen3" };

/** Fields that say nothing, or nothing more, about the mathematics. */
const harmless: ReadonlySet<string> = new Set([
  "vocab_size",
  "rope.scaling.finetuned",
  "rope.scaling.original_context_length",
  "tensor_data_layout",
]);

/** Throws `CheckpointError` that names the file and the field. */
export async function modelFromGguf(file: GgufFile): Promise<ModelOptions> {
  requireWhole(file);
  const fields = new Fields(file);
  const family = fields.family();
  const heads = fields.integer("attention.head_count");
  const width = fields.integer("embedding_length");
  const size = fields.optional("attention.key_length") ?? width / heads;
  fields.expect("attention.value_length", size);
  fields.expect("rope.dimension_count", size);
  fields.expect("expert_count", 0);
  fields.expect("expert_used_count", 0);
  fields.expect("rope.scaling.type", "none");
  fields.expect("rope.scaling.factor", 1);
  fields.expect("attention.causal", true);
  fields.expect("attention.scale", 0);
  const contextLength = fields.integer("context_length");
  fields.expectWindow(contextLength);
  const shape = {
    layers: fields.integer("block_count"),
    width,
    heads,
    keyValueHeads: fields.optional("attention.head_count_kv") ?? heads,
    feedForward: fields.integer("feed_forward_length"),
    vocabularySize: file.tensors.get("model.embed_tokens.weight")?.shape[0],
    contextLength,
    tieEmbeddings: !file.tensors.has("lm_head.weight"),
    ropeBase: fields.optional("rope.freq_base") ?? 10_000,
    rmsEpsilon: roundedFloat(fields.number("attention.layer_norm_rms_epsilon")),
  };
  fields.refuseOthers();
  const plain = completeModel(file.path, { family, headSize: size, ropeScaling: undefined, shape });
  const ropeScaling = recognizeScaling(file.path, plain, await file.readRopeFactors());
  return ropeScaling ? { ...plain, ropeScaling } : plain;
}

function requireWhole({ path, metadata }: GgufFile): void {
  const parts = metadata.get("split.count");
  if (typeof parts === "number" && parts > 1)
    throw new CheckpointError(
      `${path} is one of the ${parts} files of a model; join them (llama-gguf-split --merge) and give the whole file`,
    );
}

/** The shortest decimal of a float32 such as 1e-5, as `config.json` has it. */
function roundedFloat(value: number): number {
  return Number(value.toPrecision(7));
}

/**
 * Llama 3's scaling from what it divides each frequency by. The factor is the largest; the other numbers are those
 * of all Llama 3 models, and must give back the very factors.
 */
function recognizeScaling(path: string, plain: ModelOptions, factors: Float32Array): RopeScaling | undefined {
  if (factors.every((factor) => factor === 1)) return undefined;
  const scaling: RopeScaling = {
    factor: Math.max(...factors),
    lowFrequencyFactor: 1,
    highFrequencyFactor: 4,
    originalContextLength: 8192,
  };
  const frequencies = rotaryFrequencies(plain);
  const isLlama3 =
    factors.length === frequencies.length &&
    factors.every((factor, i) => {
      const expected = frequencyDivisor(frequencies[i] as number, scaling);
      return Math.abs(factor / expected - 1) < 1e-4;
    });
  if (isLlama3) return scaling;
  throw new CheckpointError(
    `${path}: rope_freqs.weight holds factors that are not those of Llama 3; other scalings of rotary embeddings are not supported`,
  );
}

/** The metadata of one architecture; remembers what was read. */
class Fields {
  readonly #file: GgufFile;
  readonly #architecture: string;
  readonly #read = new Set<string>();

  constructor(file: GgufFile) {
    this.#file = file;
    this.#architecture = String(file.metadata.get("general.architecture"));
  }

  family(): ModelFamily {
    const family = families[this.#architecture];
    if (family) return family;
    throw this.#error(
      `general.architecture is ${JSON.stringify(this.#architecture)}; only ${Object.keys(families).join(", ")} are supported`,
    );
  }

  #value(name: string): unknown {
    this.#read.add(name);
    return this.#file.metadata.get(`${this.#architecture}.${name}`);
  }

  optional(name: string): number | undefined {
    const value = this.#value(name);
    if (value === undefined || typeof value === "number") return value;
    throw this.#error(`${this.#architecture}.${name} is ${describe(value)}, a number was expected`);
  }

  number(name: string): number {
    const value = this.optional(name);
    if (value !== undefined) return value;
    throw this.#error(`${this.#architecture}.${name} is missing`);
  }

  integer(name: string): number {
    const value = this.number(name);
    if (Number.isSafeInteger(value) && value > 0) return value;
    throw this.#error(`${this.#architecture}.${name} is ${value}, a positive integer was expected`);
  }

  /** Refuses a field with another value than the one that changes nothing. */
  expect(name: string, neutral: unknown): void {
    const value = this.#value(name);
    if (value !== undefined && value !== neutral)
      throw this.#error(
        `${this.#architecture}.${name} ${describe(value)} is not supported; only ${describe(neutral)} is`,
      );
  }

  expectWindow(contextLength: number): void {
    const window = this.optional("attention.sliding_window");
    if (window !== undefined && window !== 0 && window < contextLength)
      throw this.#error(
        `${this.#architecture}.attention.sliding_window ${window} is shorter than the context of ${contextLength}; attention within a window is not supported`,
      );
  }

  refuseOthers(): void {
    const prefix = `${this.#architecture}.`;
    for (const [key, value] of this.#file.metadata) {
      const name = key.slice(prefix.length);
      if (!key.startsWith(prefix) || this.#read.has(name) || harmless.has(name)) continue;
      throw this.#error(
        `${key} ${describe(value)} is not supported: it may change what the model computes; use a model without it`,
      );
    }
  }

  #error(problem: string): CheckpointError {
    return new CheckpointError(`${this.#file.path}: ${problem}`);
  }
}

function describe(value: unknown): string {
  return JSON.stringify(value).slice(0, 80);
}
