/**
 * Loops over arrays of float32 numbers in WebAssembly's vectors of four: two to three times as fast as what V8 makes of a plain
 * loop, which computes in float64 one by one. A loop is a list of assignments. Its arrays pass piece by piece through a
 * memory of its own, since WebAssembly reaches no other. Every operation rounds to float32, on every machine alike.
 */
import { assert } from "../errors.ts";
import * as w from "./wasm-code.ts";

/** The name of an array or a scalar, or arithmetic on such. */
export type Expression =
  | string
  | readonly [left: Expression, operator: "+" | "-" | "*" | "/", right: Expression]
  | { readonly sqrt: Expression };

export interface VectorLoop<Array extends string, Scalar extends string> {
  readonly arrays: readonly Array[];
  readonly scalars: readonly Scalar[];
  /** In this order, for each index; an array that was assigned to has its new value afterwards. */
  readonly assignments: readonly (readonly [target: Array, value: Expression])[];
  /** Arrays that are written back. */
  readonly results: readonly Array[];
  /** The array whose squares are added up in float64, as it was before the assignments. */
  readonly squares?: Array;
}

/** Numbers of each array that are in the loop's memory at once: little enough for the processor's nearest caches. */
const pieceLength = 8192;
const pieceBytes = 4 * pieceLength;
const pageBytes = 65_536;
const vectorBytes = 16;

/** Takes arrays of one length and the scalars, by name, works in place, and returns the sum of the loop's `squares`, 0 without. */
export type CompiledLoop<Array extends string, Scalar extends string> = (
  arrays: Readonly<Record<Array, Float32Array>>,
  scalars: Readonly<Record<Scalar, number>>,
) => number;

/** Compiles a loop. Asserts that it names only its own arrays and scalars. */
export function compileVectorLoop<Array extends string, Scalar extends string>(
  loop: VectorLoop<Array, Scalar>,
): CompiledLoop<Array, Scalar> {
  const pages = Math.ceil((loop.arrays.length * pieceBytes) / pageBytes);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const module = w.moduleOf([loopFunction(loop)], "unshared");
  const { run } = new WebAssembly.Instance(module, { env: { memory } }).exports;
  const inside = loop.arrays.map(
    (_, index) => new Float32Array(memory.buffer, index * pieceBytes, pieceLength),
  );
  return (arrays, scalars) => {
    const values = loop.scalars.map((name) => scalars[name]);
    const { length } = arrays[loop.arrays[0] as Array];
    let squares = 0;
    for (let start = 0; start < length; start += pieceLength) {
      const end = Math.min(length, start + pieceLength);
      const vectors = Math.ceil((end - start) / 4);
      for (const [index, name] of loop.arrays.entries())
        (inside[index] as Float32Array).set(arrays[name].subarray(start, end));
      if (loop.squares !== undefined)
        (inside[loop.arrays.indexOf(loop.squares)] as Float32Array).fill(0, end - start, 4 * vectors);
      squares += (run as (bytes: number, ...scalars: number[]) => number)(vectorBytes * vectors, ...values);
      for (const name of loop.results) {
        const piece = inside[loop.arrays.indexOf(name)] as Float32Array;
        arrays[name].set(piece.subarray(0, end - start), start);
      }
    }
    return squares;
  };
}

const operators = { "+": w.addFour, "-": w.subtractFour, "*": w.multiplyFour, "/": w.divideFour };

/**
 * The loop over so many bytes of each array, from the end to the start. Locals: the bytes left, the scalars as they come,
 * each as a vector, the vectors of the arrays, and last the sum of the squares.
 */
function loopFunction(loop: VectorLoop<string, string>): w.WasmFunction {
  const { arrays, scalars, assignments, results, squares } = loop;
  const bytesLeft = 0;
  const names = new Map([...scalars, ...arrays].map((name, index) => [name, 1 + scalars.length + index]));
  const local = (name: string): number => {
    const index = names.get(name);
    assert(index !== undefined, `the loop has no array or scalar ${name}`);
    return index;
  };
  const offset = (name: string): number => arrays.indexOf(name) * pieceBytes;
  const evaluate = (value: Expression): w.Code => {
    if (typeof value === "string") return w.get(local(value));
    if ("sqrt" in value) return [evaluate(value.sqrt), w.rootFour];
    const [left, operator, right] = value;
    return [evaluate(left), evaluate(right), operators[operator]];
  };
  const splat = (name: string, index: number): w.Code => [w.get(1 + index), w.fourOf, w.set(local(name))];
  const load = (name: string): w.Code => [w.get(bytesLeft), w.loadPair(offset(name)), w.set(local(name))];
  const assign = ([target, value]: readonly [string, Expression]): w.Code => [
    evaluate(value),
    w.set(local(target)),
  ];
  const store = (name: string): w.Code => [w.get(bytesLeft), w.get(local(name)), w.storePair(offset(name))];
  const sum = 1 + scalars.length + names.size;
  const addSquares = (name: string): w.Code[] =>
    [0, vectorBytes / 2].map((half) => [
      [w.get(bytesLeft), w.loadHalf(offset(name) + half), w.widenHalf, w.tee(local(name))],
      [w.get(local(name)), w.multiplyPair, w.get(sum), w.addPair, w.set(sum)],
    ]);
  const next = [w.get(bytesLeft), w.constant(vectorBytes), w.subtract, w.set(bytesLeft)];
  return {
    name: "run",
    parameters: [w.I32, ...scalars.map(() => w.F32)],
    results: [w.F64],
    locals: [[names.size + 1, w.V128]],
    code: [
      scalars.map(splat),
      w.repeat(
        next,
        squares === undefined ? [] : addSquares(squares),
        arrays.map(load),
        assignments.map(assign),
        results.map(store),
        w.get(bytesLeft),
      ),
      [w.get(sum), w.ofPair(0), w.get(sum), w.ofPair(1), w.addDoubles],
    ],
  };
}
