/**
 * Vector loops over large arrays on several threads: the arrays are cut into pieces, and each thread takes the next piece
 * that nobody has taken, the caller's thread too. Other threads reach the arrays, which stay ordinary arrays of the
 * caller's, by their addresses. Results are the same bits with any number of threads.
 */
import type { Worker } from "node:worker_threads";
import koffi from "koffi";
import { EngineError } from "../errors.ts";
import { startThread } from "./start-thread.ts";
import { type CompiledLoop, compileVectorLoop, type VectorLoop } from "./vector-loop.ts";

/** What a loop is applied to: arrays of one length, and scalars, by name. */
export interface LoopWork<Array extends string, Scalar extends string> {
  readonly arrays: Readonly<Record<Array, Float32Array>>;
  readonly scalars: Readonly<Record<Scalar, number>>;
}

/** The works of a call for other threads. */
export interface LoopCall {
  readonly loop: VectorLoop<string, string>;
  /** Works one after the other; of each the addresses of its arrays in the loop's order. */
  readonly addresses: BigUint64Array;
  /** (works) */
  readonly lengths: readonly number[];
  readonly scalars: readonly Readonly<Record<string, number>>[];
  readonly shared: SharedProgress;
}

/** How far a call is, in shared memory. */
export interface SharedProgress {
  /** (3) Pieces that are taken, pieces that are done, and other threads that may be at one. */
  readonly counts: Int32Array;
  /** (pieces) The loop's sum over each. */
  readonly sums: Float64Array;
}

/** Numbers of a piece: as much as a processor goes through in a part of a millisecond. */
const numbersPerPiece = 1 << 18;
/** Fewer numbers are not worth a message. */
const numbersForOne = 1 << 21;

/** Places in `counts`. */
const taken = 0;
const done = 1;
const atWork = 2;

/** Takes pieces of the works until none are left. */
export function takePieces(
  compiled: CompiledLoop<string, string>,
  works: readonly LoopWork<string, string>[],
  { counts, sums }: SharedProgress,
): void {
  let next = Atomics.add(counts, taken, 1);
  let first = 0;
  for (const { arrays, scalars } of works) {
    const { length } = Object.values(arrays)[0] as Float32Array;
    const pieces = piecesOf(length);
    for (; next < first + pieces; next = Atomics.add(counts, taken, 1)) {
      const start = (next - first) * numbersPerPiece;
      const piece = Object.fromEntries(
        Object.entries(arrays).map(([name, data]) => [name, data.subarray(start, start + numbersPerPiece)]),
      );
      sums[next] = compiled(piece, scalars);
      Atomics.add(counts, done, 1);
    }
    first += pieces;
  }
}

/**
 * Does `work` while the caller of the loop waits for this thread; nothing where all pieces are taken already, so that a
 * thread that starts late reads no array that may be gone.
 */
export function whileAwaited({ counts, sums }: SharedProgress, work: () => void): void {
  Atomics.add(counts, atWork, 1);
  try {
    if (Atomics.load(counts, taken) < sums.length) work();
  } finally {
    Atomics.sub(counts, atWork, 1);
  }
}

function piecesOf(length: number): number {
  return Math.ceil(length / numbersPerPiece);
}

const compiledLoops = new WeakMap<object, CompiledLoop<string, string>>();
const heldWorks = new Set<unknown>();
/** More threads would wait for memory, and each is a copy of the program's runtime. */
const mostOthers = 7;

/**
 * Runs a loop over all works, in place, with so many threads at most; returns the sum of its `squares` over all works. Throws
 * `EngineError` where a thread fails; some works are done then.
 */
export async function runLoop<Array extends string, Scalar extends string>(
  loop: VectorLoop<Array, Scalar>,
  allWorks: readonly LoopWork<Array, Scalar>[],
  threads: number,
): Promise<number> {
  const works = allWorks.filter(({ arrays }) => arrays[loop.arrays[0] as Array].length > 0);
  const compiled = compiledLoops.get(loop) ?? compileVectorLoop<string, string>(loop);
  compiledLoops.set(loop, compiled);
  const lengths = works.map(({ arrays }) => arrays[loop.arrays[0] as Array].length);
  const pieces = lengths.reduce((sum, length) => sum + piecesOf(length), 0);
  const shared: SharedProgress = {
    counts: new Int32Array(new SharedArrayBuffer(3 * Int32Array.BYTES_PER_ELEMENT)),
    sums: new Float64Array(new SharedArrayBuffer(pieces * Float64Array.BYTES_PER_ELEMENT)),
  };
  const isLarge = lengths.reduce((sum, length) => sum + length, 0) >= numbersForOne;
  const others = isLarge ? LoopThreads.get(Math.min(mostOthers, threads - 1)) : undefined;
  // Other threads know the arrays by their addresses alone.
  heldWorks.add(works);
  try {
    others?.help({ loop, lengths, shared, ...forOthers(loop, works) });
    takePieces(compiled, works, shared);
    await others?.waitFor(shared);
  } finally {
    heldWorks.delete(works);
  }
  return shared.sums.reduce((sum, part) => sum + part, 0);
}

function forOthers<Array extends string>(
  loop: VectorLoop<Array, string>,
  works: readonly LoopWork<Array, string>[],
): Pick<LoopCall, "addresses" | "scalars"> {
  const addresses = works.flatMap(({ arrays }) => loop.arrays.map((name) => koffi.address(arrays[name])));
  return { addresses: BigUint64Array.from(addresses), scalars: works.map(({ scalars }) => scalars) };
}

function startWorker(): Worker {
  try {
    return startThread("loop-worker", import.meta.url, undefined);
  } catch (cause) {
    throw new EngineError(
      `the system gives no thread to compute with: ${(cause as Error).message}; set engine.threads to 1, or end other programs`,
      { cause, kind: "failed" },
    );
  }
}

/** The other threads of this process, which start at the first call that wants them and keep no process alive. */
class LoopThreads {
  static #current: LoopThreads | undefined;
  readonly #workers: Worker[] = [];
  readonly #listeners = new Set<Listener>();
  #failure: EngineError | undefined;
  /** Whether any of them has come as far as a call, or a call was told why not. */
  #isHeardOf = false;
  /** After a failure: none of them runs any more. */
  #isEnded = false;

  /** Throws `EngineError` where the system gives no thread, and once where those of the call before could not start: their call had no need of them. */
  static get(count: number): LoopThreads | undefined {
    if (count < 1) return undefined;
    let threads = LoopThreads.#current;
    if (threads !== undefined && threads.#failure !== undefined) {
      LoopThreads.#current = undefined;
      if (!threads.#isHeardOf) throw threads.#failure;
      threads = undefined;
    }
    threads ??= new LoopThreads();
    LoopThreads.#current = threads;
    threads.#grow(count);
    return threads;
  }

  /** Sends a call to all threads. */
  help(call: LoopCall): void {
    for (const worker of this.#workers) worker.postMessage(call);
  }

  /** Waits for the threads that may be at a piece of a call, of which all pieces are taken. */
  async waitFor({ counts, sums }: SharedProgress): Promise<void> {
    while (Atomics.load(counts, atWork) > 0) await this.#nextAnswer();
    // A thread that failed at its piece has not done it; why it failed comes as an event.
    while (Atomics.load(counts, done) < sums.length) await this.#nextAnswer();
  }

  #grow(count: number): void {
    while (this.#workers.length < count) {
      const worker = startWorker();
      worker.on("message", () => {
        this.#isHeardOf = true;
        this.#tell(({ resolve }) => resolve());
      });
      worker.on("error", (cause) => this.#fail(`failed: ${cause.message}`, cause));
      worker.on("exit", (code) => this.#fail(`ended with code ${code}`));
      worker.unref();
      this.#workers.push(worker);
    }
  }

  async #nextAnswer(): Promise<void> {
    for (const worker of this.#workers) worker.ref();
    try {
      await new Promise<void>((resolve, reject) => {
        if (this.#failure && this.#isEnded) reject(this.#failure);
        else this.#listeners.add({ resolve, reject });
      });
    } catch (failure) {
      this.#isHeardOf = true;
      throw failure;
    } finally {
      for (const worker of this.#workers) worker.unref();
    }
  }

  /** Calls that cannot end are told when no thread can write into their arrays any more. */
  #fail(what: string, cause?: unknown): void {
    if (this.#failure) return;
    const failure = new EngineError(`a thread that computes with the others ${what}`, {
      cause,
      kind: "failed",
    });
    this.#failure = failure;
    void Promise.allSettled(this.#workers.map((worker) => worker.terminate())).then(() => {
      this.#isEnded = true;
      this.#tell(({ reject }) => reject(failure));
    });
  }

  #tell(tell: (listener: Listener) => void): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    for (const listener of listeners) tell(listener);
  }
}

interface Listener {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}
