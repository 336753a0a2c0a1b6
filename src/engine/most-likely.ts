/**
 * The most likely token of a row of log-probabilities. Greedy sampling looks for it in each row while the model's threads wait;
 * over a large vocabulary WebAssembly's vectors of four find it in a third of the time of a plain loop, the copy into their
 * memory included.
 */
import * as w from "../shared/wasm-code.ts";

/** Below so many tokens the plain loop is as fast. */
const leastTokens = 2048;
const vectorBytes = 16;
/** Vectors that are looked at in one turn of the loop. */
const atOnce = 4;
const turnBytes = atOnce * vectorBytes;
const pageBytes = 65_536;

/** The token with the greatest log-probability (V), ties to the lower id. */
export function mostLikely(logprobs: Float32Array): number {
  return logprobs.length < leastTokens ? mostLikelyOfFew(logprobs) : searcherFor(logprobs.length)(logprobs);
}

function mostLikelyOfFew(logprobs: Float32Array): number {
  let best = 0;
  let highest = logprobs[0] as number;
  for (let token = 1; token < logprobs.length; token++) {
    const logprob = logprobs[token] as number;
    if (logprob > highest) {
      highest = logprob;
      best = token;
    }
  }
  return best;
}

type Searcher = (logprobs: Float32Array) => number;
let largest: { readonly tokens: number; readonly search: Searcher } | undefined;

/** One memory for all vocabularies, as large as the largest that was met. */
function searcherFor(tokens: number): Searcher {
  if (largest === undefined || largest.tokens < tokens) largest = { tokens, search: createSearcher(tokens) };
  return largest.search;
}

function createSearcher(tokens: number): Searcher {
  const pages = Math.ceil((turnBytes * (2 + Math.ceil((4 * tokens) / turnBytes))) / pageBytes);
  const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  const module = w.moduleOf([greatestFunction, findFunction], "unshared");
  const { greatest, find } = new WebAssembly.Instance(module, { env: { memory } }).exports as {
    readonly greatest: (bytes: number) => void;
    readonly find: (value: number) => number;
  };
  const values = new Float32Array(memory.buffer);
  const first = turnBytes / 4;
  return (logprobs) => {
    values.set(logprobs, first);
    const bytes = turnBytes * Math.ceil((4 * logprobs.length) / turnBytes);
    values.fill(Number.NEGATIVE_INFINITY, first + logprobs.length, first + bytes / 4);
    greatest(bytes);
    const highest = Math.max(...values.subarray(0, 4));
    // What is no number among the first ones hides the others of its lane.
    if (!(highest > Number.NEGATIVE_INFINITY)) return mostLikelyOfFew(logprobs);
    const vector = find(highest) / 4 - first;
    return logprobs.indexOf(highest, vector);
  };
}

/** Writes the greatest of all first, second, third and fourth numbers of vectors to the start of the memory; values follow it. */
const greatestFunction: w.WasmFunction = {
  name: "greatest",
  parameters: [w.I32],
  results: [],
  locals: [[atOnce, w.V128]],
  code: (() => {
    const bytesLeft = 0;
    const lanes = Array.from({ length: atOnce }, (_, i) => 1 + i);
    const load = (lane: number): w.Code => [w.get(bytesLeft), w.loadPair((lane - 1) * vectorBytes)];
    const start = lanes.map((lane) => [w.constant(0), w.loadPair(turnBytes), w.set(lane)]);
    const next = [w.get(bytesLeft), w.constant(turnBytes), w.subtract, w.tee(bytesLeft)];
    return [
      start,
      w.repeat(
        lanes.map((lane) => [w.get(lane), load(lane), w.greaterFour, w.set(lane)]),
        next,
      ),
      w.constant(0),
      [w.get(1), w.get(2), w.greaterFour, w.get(3), w.greaterFour, w.get(4), w.greaterFour],
      w.storePair(0),
    ];
  })(),
};

/** The address of the first vector that holds a number; there must be one. */
const findFunction: w.WasmFunction = {
  name: "find",
  parameters: [w.F32],
  results: [w.I32],
  locals: [
    [1, w.I32],
    [1, w.V128],
  ],
  code: [
    [w.get(0), w.fourOf, w.set(2)],
    [w.constant(turnBytes - vectorBytes), w.set(1)],
    w.repeat(
      [w.get(1), w.constant(vectorBytes), w.add, w.tee(1)],
      [w.loadPair(0), w.get(2), w.areFourEqual, w.isAny, w.isZero],
    ),
    w.get(1),
  ],
};
