/**
 * Files of named tensors, read by position: a header says what there is, values are read one tensor at a time into
 * the float32 array that will hold them, so that a model is never twice in memory. Safetensors and GGUF share it.
 */
import { type FileHandle, open } from "node:fs/promises";
import { CheckpointError } from "../errors.ts";
import { fileError } from "../shared/files.ts";
import type { Parameter } from "./parameters.ts";

/** What a header says of one tensor. */
export interface TensorEntry {
  /** Type as the file names it, such as F32, BF16, Q4_1. */
  readonly dtype: string;
  /** Outermost first, as in PyTorch. */
  readonly shape: readonly number[];
  /** Where its values lie in the file. */
  readonly start: number;
  readonly end: number;
}

/** Several tensors in one or more files. */
export interface TensorSource {
  /** The file or folder, for messages. */
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  /** Size of all files in bytes. */
  readonly bytes: number;
  /** The values as float32. Throws `CheckpointError` or `FileError`. */
  read(name: string): Promise<Parameter>;
  close(): Promise<void>;
}

/** How values of one type are stored: blocks of `size` values in `bytes` bytes. */
export interface BlockFormat {
  readonly size: number;
  readonly bytes: number;
  /** Decodes whole blocks into `target` from index `start` on. */
  readonly decode: (bytes: Uint8Array, target: Float32Array, start: number) => void;
}

/** Bytes that are decoded at a time. */
const windowBytes = 4 << 20;

/** An open file with a known size. */
export class OpenFile {
  readonly path: string;
  readonly size: number;
  readonly #handle: FileHandle;

  private constructor(path: string, size: number, handle: FileHandle) {
    this.path = path;
    this.size = size;
    this.#handle = handle;
  }

  static async open(path: string): Promise<OpenFile> {
    try {
      const handle = await open(path, "r");
      const status = await handle.stat();
      if (status.isFile()) return new OpenFile(path, status.size, handle);
      await handle.close();
    } catch (cause) {
      throw fileError(`cannot read ${path}`, cause);
    }
    throw new CheckpointError(`${path} is a folder, a file with weights was expected`);
  }

  /** Fills `target` from `position` on. Throws `CheckpointError` when the file ends before. */
  async read(target: Uint8Array, position: number): Promise<void> {
    for (let done = 0; done < target.length; ) {
      let count: number;
      try {
        const length = target.length - done;
        count = (await this.#handle.read(target, done, length, position + done)).bytesRead;
      } catch (cause) {
        throw fileError(`cannot read ${this.path}`, cause);
      }
      if (count === 0)
        throw new CheckpointError(
          `${this.path} ended at byte ${position + done} while it was read; use another copy`,
        );
      done += count;
    }
  }

  /** Reads the values of one tensor; `format` is that of its type. */
  async readValues({ shape, start, end }: TensorEntry, format: BlockFormat): Promise<Parameter> {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    const blocks = Math.max(1, Math.floor(windowBytes / format.bytes));
    const window = Buffer.allocUnsafe(Math.min(end - start, blocks * format.bytes));
    for (let position = start, done = 0; position < end; position += window.length) {
      const part = window.subarray(0, Math.min(window.length, end - position));
      await this.read(part, position);
      format.decode(part, data, done);
      done += (part.length / format.bytes) * format.size;
    }
    return { shape, data };
  }

  /** Reads float32 values straight into the array that holds them. */
  async readFloats({ shape, start }: TensorEntry): Promise<Parameter> {
    const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
    await this.read(new Uint8Array(data.buffer), start);
    return { shape, data };
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}
