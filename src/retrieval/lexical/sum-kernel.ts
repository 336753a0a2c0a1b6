/**
 * The two loops that a search comes down to, as WebAssembly: adding the entries of a term to the sums of a window of
 * passages, and finding the highest sums. In JavaScript V8 takes 2 to 3 ns for each entry, after a thousand calls
 * that it takes to compile the loops well; here less than 1 ns, from the first call on. Doubles are multiplied and added as
 * JavaScript does it.
 *
 * Entries are read where they lie, if that is in the kernel's memory (`EntryMemory`), or else copied into it.
 */
import * as w from "../../shared/wasm-code.ts";

/** Passages in a window at most; a multiple of `GROUP`. */
export const WINDOW = 1 << 16;
/** Sums that are looked at together. */
export const GROUP = 8;

/** Where the arrays of a kernel lie, in bytes from the start of its part of the memory. */
const PASSAGES = 8 * WINDOW;
const IMPACTS = PASSAGES + 4 * WINDOW;
const SCORES = IMPACTS + 4 * WINDOW;
const PLACES = SCORES + 8 * WINDOW;
const KERNEL_BYTES = PLACES + 4 * WINDOW;
const PAGE = 65_536;

/** Memory that kernels of several threads work in, each in a part of its own, and that holds the entries of an index. */
export interface EntryMemory {
  readonly memory: WebAssembly.Memory;
  readonly passages: Uint32Array;
  readonly impacts: Float32Array;
}

/** Memory for `threads` kernels and `entries` entries; undefined where it would exceed the 4 GiB of WebAssembly. */
export function entryMemory(entries: number, threads: number): EntryMemory | undefined {
  const start = threads * KERNEL_BYTES;
  const pages = Math.ceil((start + 8 * entries) / PAGE);
  if (pages > w.MOST_PAGES) return undefined;
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true });
  return {
    memory,
    passages: new Uint32Array(memory.buffer, start, entries),
    impacts: new Float32Array(memory.buffer, start + 4 * entries, entries),
  };
}

/** The entries of one term that are added: from `from` to `to` (exclusive), whose passages lie in the window. */
export interface Addition {
  readonly passages: Uint32Array;
  readonly impacts: Float32Array;
  readonly from: number;
  readonly to: number;
  readonly weight: number;
}

/** The sums of a window of passages; not for several threads. */
export class SumKernel {
  /** (WINDOW) By place in the window, which is the position less its start; all 0 at first and after `find`. */
  readonly sums: Float64Array;
  /** (WINDOW) What `find` found, by rising place. */
  readonly scores: Float64Array;
  readonly places: Uint32Array;
  readonly #memory: ArrayBufferLike;
  readonly #passages: Uint32Array;
  readonly #impacts: Float32Array;
  readonly #start: number;
  readonly #functions: Functions;

  /** In the part of `memory` for the thread of this number, from 0 on. */
  constructor(
    memory = new WebAssembly.Memory({
      initial: KERNEL_BYTES / PAGE,
      maximum: KERNEL_BYTES / PAGE,
      shared: true,
    }),
    thread = 0,
  ) {
    module ??= w.moduleOf([addFunction(), findFunction()]);
    const { exports } = new WebAssembly.Instance(module, { env: { memory } });
    const start = thread * KERNEL_BYTES;
    const { buffer } = memory;
    this.#functions = exports as unknown as Functions;
    this.#memory = buffer;
    this.#start = start;
    this.sums = new Float64Array(buffer, start, WINDOW);
    this.#passages = new Uint32Array(buffer, start + PASSAGES, WINDOW);
    this.#impacts = new Float32Array(buffer, start + IMPACTS, WINDOW);
    this.scores = new Float64Array(buffer, start + SCORES, WINDOW);
    this.places = new Uint32Array(buffer, start + PLACES, WINDOW);
  }

  /** Adds weight times impact for each of the entries; the window begins at the passage `first`. */
  add({ passages, impacts, from, to, weight }: Addition, first: number): void {
    let passagesAt = passages.byteOffset + 4 * from;
    let impactsAt = impacts.byteOffset + 4 * from;
    if (passages.buffer !== this.#memory) {
      this.#passages.set(passages.subarray(from, to));
      this.#impacts.set(impacts.subarray(from, to));
      passagesAt = this.#passages.byteOffset;
      impactsAt = this.#impacts.byteOffset;
    }
    // Bytes from where the window's first passage would have its sum if positions were places.
    this.#functions.add(passagesAt, impactsAt, to - from, this.#start - 8 * first, weight);
  }

  /** Finds the sums of at least `floor`, which is above 0, among the first `size`, clears all these, and returns how many. */
  find(size: number, floor: number): number {
    return this.#functions.find(this.#start, Math.ceil(size / GROUP) * GROUP, floor);
  }
}

interface Functions {
  add(passages: number, impacts: number, count: number, sums: number, weight: number): void;
  find(start: number, size: number, floor: number): number;
}

let module: WebAssembly.Module | undefined;

function addFunction(): w.WasmFunction {
  const [passages, impacts, count, sums, weight, end, sum] = [0, 1, 2, 3, 4, 5, 6];
  const { get, set, tee } = w;
  const code: w.Code = [
    [get(passages), get(count), w.constant(2), w.shiftLeft, w.add, set(end)],
    [get(passages), get(end), w.isBelow],
    w.when(
      w.repeat(
        [get(passages), w.loadInteger(), w.constant(3), w.shiftLeft, get(sums), w.add, tee(sum)],
        [get(sum), w.loadDouble()],
        [get(impacts), w.loadSingle(), w.toDouble, get(weight), w.multiplyDoubles, w.addDoubles],
        w.storeDouble(),
        [get(impacts), w.constant(4), w.add, set(impacts)],
        [get(passages), w.constant(4), w.add, tee(passages), get(end), w.isBelow],
      ),
    ),
  ];
  const parameters = [w.I32, w.I32, w.I32, w.I32, w.F64];
  return { name: "add", parameters, results: [], locals: [[2, w.I32]], code };
}

function findFunction(): w.WasmFunction {
  const [start, size, floor, group, sum, groupEnd, end, found, floors] = [0, 1, 2, 3, 4, 5, 6, 7, 8];
  const { get, set, tee } = w;
  const pairs = [0, 16, 32, 48];
  const [a = [], b = [], c = [], d = []] = pairs.map((offset) => [get(group), w.loadPair(offset)]);
  const take: w.Code = [
    [
      get(start),
      get(found),
      w.constant(3),
      w.shiftLeft,
      w.add,
      get(sum),
      w.loadDouble(),
      w.storeDouble(SCORES),
    ],
    [get(start), get(found), w.constant(2), w.shiftLeft, w.add],
    [get(sum), get(start), w.subtract, w.constant(3), w.shiftRight, w.storeInteger(PLACES)],
    [get(found), w.constant(1), w.add, set(found)],
  ];
  const lookThrough: w.Code = [
    [get(group), tee(sum), w.constant(8 * GROUP), w.add, set(groupEnd)],
    w.repeat([get(sum), w.loadDouble(), get(floor), w.isDoubleAtLeast], w.when(take), [
      get(sum),
      w.constant(8),
      w.add,
      tee(sum),
      get(groupEnd),
      w.isBelow,
    ]),
  ];
  const code: w.Code = [
    [get(start), tee(group), get(size), w.constant(3), w.shiftLeft, w.add, set(end)],
    [get(floor), w.pairOf, set(floors)],
    [get(group), get(end), w.isBelow],
    w.when(
      w.repeat(
        [a, b, w.greaterPair, c, d, w.greaterPair, w.greaterPair, get(floors), w.isPairAtLeast, w.isAny],
        w.when(lookThrough),
        pairs.map((offset) => [get(group), w.zeroPair, w.storePair(offset)]),
        [get(group), w.constant(8 * GROUP), w.add, tee(group), get(end), w.isBelow],
      ),
    ),
    get(found),
  ];
  const parameters = [w.I32, w.I32, w.F64];
  const locals = [
    [5, w.I32],
    [1, w.V128],
  ] as const;
  return { name: "find", parameters, results: [w.I32], locals, code };
}
