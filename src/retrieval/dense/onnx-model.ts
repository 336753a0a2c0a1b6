/**
 * An ONNX model file run on the CPU for many token sequences. Sequences are sorted by length and run in batches of
 * a fixed make-up, so that the result never depends on timing. Several batches run side by side with few threads
 * each, which measured faster than one batch on all threads.
 *
 * Models with dynamic quantisation scale their activations by the whole batch: a sequence gets another vector beside
 * other mates. `isDynamic` tells, and such models are run one sequence at a time (also the fastest way on two cores).
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { EngineError, RetrieverError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";
import type { Feed, RuntimeSession } from "../../shared/onnx-runtime/session.ts";
import type { TokenSequence } from "./token-ids.ts";

/** What a batch gave: a tensor whose first dimension is the batch, in the order of `positions`. */
export interface BatchOutput {
  /** Where each sequence of the batch stands in the input. */
  readonly positions: readonly number[];
  readonly lengths: readonly number[];
  readonly data: Float32Array;
  readonly shape: readonly number[];
}

export interface RunOptions {
  /** Sequences that are run together at most. */
  readonly batchSize: number;
  /** Name of the output to read. */
  readonly output: string;
  readonly onBatch: (output: BatchOutput) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Calls that libuv's pool of threads runs at once, unless the environment says otherwise. */
const MAX_LANES = 4;

export class OnnxModel {
  readonly outputs: readonly {
    readonly name: string;
    readonly rank: number;
    readonly width: number | undefined;
  }[];
  /** True when the result of a sequence depends on what else is in its batch. */
  readonly isDynamic: boolean;
  /** SHA-256 of the model file and of the data files beside it. */
  readonly hash: string;
  readonly #session: RuntimeSession;
  readonly #lanes: number;

  private constructor(
    session: RuntimeSession,
    about: { readonly lanes: number; readonly isDynamic: boolean; readonly hash: string },
  ) {
    this.#session = session;
    this.#lanes = about.lanes;
    this.isDynamic = about.isDynamic;
    this.hash = about.hash;
    this.outputs = session.outputs.map(({ name, shape }) => {
      const width = shape.at(-1) ?? -1;
      return { name, rank: shape.length, width: width < 0 ? undefined : width };
    });
  }

  /** Opens a model file. Throws `FileError` when it cannot be read, `RetrieverError` when ONNX Runtime refuses it. */
  static async open(path: string, threads: number): Promise<OnnxModel> {
    const { isDynamic, hash } = await inspect(path);
    const lanes = Math.min(threads, MAX_LANES);
    const { RuntimeSession } = await import("../../shared/onnx-runtime/session.ts");
    try {
      const session = RuntimeSession.open(path, { threads: Math.floor(threads / lanes) });
      return new OnnxModel(session, { lanes, isDynamic, hash });
    } catch (cause) {
      if (cause instanceof EngineError) throw cause;
      throw new RetrieverError(
        `${path} is no model that ONNX Runtime can run (${(cause as Error).message}); expected a complete .onnx file with its data files beside it`,
        { cause },
      );
    }
  }

  /** Runs all sequences; `onBatch` gets each batch as it is done, in no fixed order. Throws the signal's reason. */
  async run(sequences: readonly TokenSequence[], options: RunOptions): Promise<void> {
    const batches = batchesByLength(sequences, options.batchSize);
    let next = 0;
    let isStopped = false;
    const lane = async (): Promise<void> => {
      while (next < batches.length && !isStopped) {
        options.signal?.throwIfAborted();
        const positions = batches[next++] as readonly number[];
        try {
          options.onBatch(await this.#runBatch(sequences, positions, options.output));
        } catch (error) {
          isStopped = true;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: this.#lanes }, lane));
    options.signal?.throwIfAborted();
  }

  async #runBatch(
    sequences: readonly TokenSequence[],
    positions: readonly number[],
    output: string,
  ): Promise<BatchOutput> {
    const batch = positions.map((position) => sequences[position] as TokenSequence);
    const lengths = batch.map(({ ids }) => ids.length);
    const shape = [batch.length, Math.max(...lengths)];
    const arrays = fillInputs(batch, shape[1] as number);
    const feeds = new Map<string, Feed>();
    for (const name of this.#session.inputNames) {
      const data = arrays[name];
      if (data === undefined)
        throw new RetrieverError(
          `the model wants an input "${name}"; Forager can feed ${Object.keys(arrays).join(", ")}; export it as a plain encoder`,
        );
      feeds.set(name, { data, shape });
    }
    let result: Feed;
    try {
      result = (await this.#session.run(feeds, [output])).get(output) as Feed;
    } catch (cause) {
      throw new RetrieverError(`ONNX Runtime failed: ${(cause as Error).message}`, { cause });
    }
    return { positions, lengths, data: result.data as Float32Array, shape: result.shape };
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

async function inspect(path: string): Promise<{ readonly isDynamic: boolean; readonly hash: string }> {
  try {
    const bytes = await readFile(path);
    const hash = createHash("sha256").update(bytes);
    const siblings = (await readdir(dirname(path))).filter((file) => isDataOf(file, basename(path))).sort();
    for (const file of siblings)
      for await (const piece of createReadStream(join(dirname(path), file))) hash.update(piece as Buffer);
    return { isDynamic: bytes.includes("DynamicQuantize"), hash: hash.digest("hex") };
  } catch (cause) {
    throw fileError(`cannot read the model ${path}`, cause);
  }
}

/** Weights outside of the model file: `model.onnx_data`, `model.onnx_data_1`, `model.onnx.data`. */
function isDataOf(file: string, model: string): boolean {
  return file.startsWith(`${model}_data`) || file === `${model}.data`;
}

/** Positions in batches, longest first, so that lanes end together; equal lengths stay in order. */
export function batchesByLength(
  sequences: readonly TokenSequence[],
  batchSize: number,
): readonly (readonly number[])[] {
  const length = (position: number): number => (sequences[position] as TokenSequence).ids.length;
  const order = sequences.map((_, position) => position).sort((a, b) => length(b) - length(a) || a - b);
  const batches: number[][] = [];
  for (let at = 0; at < order.length; at += batchSize) batches.push(order.slice(at, at + batchSize));
  return batches;
}

/** (batch, length) each, right-padded with 0. */
function fillInputs(
  batch: readonly TokenSequence[],
  length: number,
): Readonly<Record<string, BigInt64Array>> {
  const size = batch.length * length;
  const ids = new BigInt64Array(size);
  const mask = new BigInt64Array(size);
  const types = new BigInt64Array(size);
  const positions = new BigInt64Array(size);
  for (const [row, sequence] of batch.entries())
    for (let i = 0; i < sequence.ids.length; i++) {
      const at = row * length + i;
      ids[at] = BigInt(sequence.ids[i] as number);
      mask[at] = 1n;
      types[at] = BigInt(sequence.types?.[i] ?? 0);
      positions[at] = BigInt(i);
    }
  return { input_ids: ids, attention_mask: mask, token_type_ids: types, position_ids: positions };
}
