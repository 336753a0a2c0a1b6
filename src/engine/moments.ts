/**
 * The two moments that AdamW keeps of every trained number, in memory or in a file. The file has no name (it is removed
 * as soon as it is open), so that a kill leaves nothing behind, and all its bytes exist from the start, so that a full
 * disk is found before any weight has changed.
 */
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { assert, FileError } from "../errors.ts";
import { fileError } from "../shared/files.ts";
import type { ParameterSet } from "./parameters.ts";

export const momentKinds = ["first", "second"] as const;
export type MomentKind = (typeof momentKinds)[number];

/** Both moments of some consecutive numbers of a parameter. */
export interface MomentsPiece extends Readonly<Record<MomentKind, Float32Array>> {
  /** The index of the first of them. */
  readonly start: number;
}

export interface Moments {
  /** By parameter. */
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  /** All of them by parameter, to be changed in place; undefined where they lie in a file. */
  readonly inMemory: ReadonlyMap<string, MomentsPiece> | undefined;
  /** Hands out the moments of one parameter piece by piece; what `change` writes into a piece stays. Throws `FileError`. */
  change(name: string, change: (piece: MomentsPiece) => void | Promise<void>): Promise<void>;
  /** The values of one moment, piece by piece; a piece is valid until the next is asked for. Throws `FileError`. */
  read(kind: MomentKind, name: string): AsyncIterable<Float32Array>;
  close(): Promise<void>;
}

/** Makes moments, all 0, for parameters. */
export type CreateMoments = (parameters: ParameterSet) => Promise<Moments>;

export async function momentsInMemory(parameters: ParameterSet): Promise<Moments> {
  const arrays = new Map(
    [...parameters].map(([name, { data }]) => {
      const zeros = (): Float32Array => new Float32Array(data.length);
      return [name, { start: 0, first: zeros(), second: zeros() }];
    }),
  );
  const of = (name: string): MomentsPiece => {
    const piece = arrays.get(name);
    assert(piece, `${name} has no moments`);
    return piece;
  };
  return {
    shapes: shapesOf(parameters),
    inMemory: arrays,
    change: async (name, change) => await change(of(name)),
    async *read(kind, name) {
      yield of(name)[kind];
    },
    close: async () => arrays.clear(),
  };
}

/** Numbers of a parameter that are read and written at a time. */
const defaultPieceLength = 1 << 20;

/** Moments in a file of 8 bytes for each number, in `folder`. Throws `FileError`. */
export function momentsInFile(folder: string, pieceLength = defaultPieceLength): CreateMoments {
  return (parameters) => FileMoments.create(folder, parameters, pieceLength);
}

interface Place {
  /** In bytes. */
  readonly position: number;
  readonly length: number;
}

const floatBytes = Float32Array.BYTES_PER_ELEMENT;

/** Pieces follow each other in the order of the parameters, of each first its first moments, then its second ones. */
class FileMoments implements Moments {
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly inMemory = undefined;
  readonly #folder: string;
  readonly #handle: FileHandle;
  readonly #places: ReadonlyMap<string, Place>;
  readonly #buffer: Float32Array;
  readonly #pieceLength: number;

  private constructor(
    file: { folder: string; handle: FileHandle },
    parameters: ParameterSet,
    length: number,
  ) {
    this.shapes = shapesOf(parameters);
    this.#folder = file.folder;
    this.#handle = file.handle;
    this.#places = placesOf(parameters);
    this.#buffer = new Float32Array(2 * length);
    this.#pieceLength = length;
  }

  static async create(folder: string, parameters: ParameterSet, pieceLength: number): Promise<FileMoments> {
    let handle: FileHandle | undefined;
    try {
      handle = await openNameless(folder);
      const moments = new FileMoments({ folder, handle }, parameters, pieceLength);
      await moments.#fillWithZeros();
      return moments;
    } catch (cause) {
      await handle?.close();
      throw fileError(`cannot keep the optimiser's moments in ${folder}`, cause);
    }
  }

  async change(name: string, change: (piece: MomentsPiece) => void | Promise<void>): Promise<void> {
    for (const { start, length, position } of this.#pieces(name)) {
      const both = this.#buffer.subarray(0, 2 * length);
      await this.#read(both, position);
      await change({ start, first: both.subarray(0, length), second: both.subarray(length) });
      await this.#write(both, position);
    }
  }

  async *read(kind: MomentKind, name: string): AsyncIterable<Float32Array> {
    for (const { length, position } of this.#pieces(name)) {
      const values = this.#buffer.subarray(0, length);
      await this.#read(values, position + momentKinds.indexOf(kind) * length * floatBytes);
      yield values;
    }
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #fillWithZeros(): Promise<void> {
    for (const name of this.#places.keys())
      for (const { length, position } of this.#pieces(name))
        await this.#write(this.#buffer.subarray(0, 2 * length), position);
  }

  *#pieces(name: string): Generator<Place & { readonly start: number }> {
    const place = this.#places.get(name);
    assert(place, `${name} has no moments`);
    for (let start = 0; start < place.length; start += this.#pieceLength) {
      const length = Math.min(this.#pieceLength, place.length - start);
      yield { start, length, position: place.position + 2 * start * floatBytes };
    }
  }

  async #read(target: Float32Array, position: number): Promise<void> {
    await this.#transfer(target, async (bytes, done) => {
      const { bytesRead } = await this.#handle.read(bytes, done, bytes.length - done, position + done);
      return bytesRead;
    });
  }

  async #write(source: Float32Array, position: number): Promise<void> {
    await this.#transfer(source, async (bytes, done) => {
      const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, position + done);
      return bytesWritten;
    });
  }

  /** Repeats `work`, which says how many bytes it moved, until all of `values` are. */
  async #transfer(
    values: Float32Array,
    work: (bytes: Uint8Array, done: number) => Promise<number>,
  ): Promise<void> {
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const what = `the optimiser's moments in ${this.#folder}`;
    for (let done = 0; done < bytes.length; ) {
      let moved: number;
      try {
        moved = await work(bytes, done);
      } catch (cause) {
        throw fileError(`cannot read or write ${what}`, cause);
      }
      if (moved === 0) throw new FileError(`${what} are cut short; another program has changed their file`);
      done += moved;
    }
  }
}

async function openNameless(folder: string): Promise<FileHandle> {
  const own = await mkdtemp(join(folder, ".moments-"));
  try {
    return await open(join(own, "moments"), "wx+");
  } finally {
    await rm(own, { recursive: true });
  }
}

function placesOf(parameters: ParameterSet): ReadonlyMap<string, Place> {
  const places = new Map<string, Place>();
  let position = 0;
  for (const [name, { data }] of parameters) {
    places.set(name, { position, length: data.length });
    position += 2 * data.byteLength;
  }
  return places;
}

function shapesOf(parameters: ParameterSet): ReadonlyMap<string, readonly number[]> {
  return new Map([...parameters].map(([name, { shape }]) => [name, shape]));
}
