/**
 * Probabilities summed over blocks of tokens, so that a token is drawn by walking along some hundred blocks and through one of
 * them: the exponentials of a whole vocabulary take JavaScript 0.4 ms a row, all threads of the model a tenth of that.
 */
import { Graph, type Tensor } from "./graph.ts";
import { reshape } from "./operators.ts";
import { type Feed, Session } from "./session.ts";

/** Tokens of a block. */
export const blockTokens = 64;
/** Below so many tokens walking through all of them is as fast. */
const leastTokens = 4096;

export class BlockMasses {
  readonly #vocabularySize: number;
  readonly #threads: number;
  /** By the number of ids that may be drawn. */
  readonly #sessions = new Map<number, { readonly session: Session; readonly output: string }>();
  #masses = new Float32Array();

  constructor(vocabularySize: number, threads: number) {
    this.#vocabularySize = vocabularySize;
    this.#threads = threads;
  }

  /**
   * Of rows of log-probabilities (rows, vocabulary) at a temperature each, above 0: for each row the share of each block among the
   * first `count` ids, (rows, vocabulary / blockTokens), in an array that the next call writes over. Undefined for a
   * vocabulary that is small or not made of whole blocks.
   */
  async of(
    logprobs: Float32Array,
    temperatures: readonly number[],
    count: number,
  ): Promise<Float32Array | undefined> {
    const size = this.#vocabularySize;
    if (size < leastTokens || size % blockTokens !== 0) return undefined;
    const rows = temperatures.length;
    const { session, output } = await this.#open(count);
    const length = (rows * size) / blockTokens;
    if (this.#masses.length < length) this.#masses = new Float32Array(length);
    const masses = this.#masses.subarray(0, length);
    const inverses = Float32Array.from(temperatures, (temperature) => 1 / temperature);
    const feeds = new Map<string, Feed>([
      ["logprobs", { data: logprobs, shape: [rows, size] }],
      ["inverses", { data: inverses, shape: [rows, 1] }],
    ]);
    if (count < size) feeds.set("mask", { data: maskBeyond(count, size), shape: [size] });
    await session.run(feeds, [], new Map([[output, { data: masses, shape: [rows, size / blockTokens] }]]));
    return masses;
  }

  /** Gives back sessions and arrays, which the next call makes anew. */
  async rest(): Promise<void> {
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    this.#masses = new Float32Array();
    await Promise.all(sessions.map(({ session }) => session.close()));
  }

  async #open(count: number): Promise<{ readonly session: Session; readonly output: string }> {
    const known = this.#sessions.get(count);
    if (known) return known;
    const size = this.#vocabularySize;
    const graph = new Graph();
    const logprobs = graph.input("logprobs", ["N", size]);
    const scaled = graph.node("Mul", [logprobs, graph.input("inverses", ["N", 1])], logprobs.shape);
    const drawable: Tensor =
      count < size ? graph.node("Add", [scaled, graph.input("mask", [size])], scaled.shape) : scaled;
    const shares = graph.node("Softmax", [drawable], drawable.shape, { attributes: { axis: -1 } });
    const blocks = size / blockTokens;
    const masses = graph.node(
      "ReduceSum",
      [reshape(graph, shares, ["N", blocks, blockTokens]), graph.integers([2])],
      ["N", blocks],
      { attributes: { keepdims: 0 } },
    );
    const opened = {
      session: await Session.create(graph, [masses], { threads: this.#threads }),
      output: masses.name,
    };
    this.#sessions.set(count, opened);
    return opened;
  }
}

/** Added to log-probabilities: -Infinity from an id on. */
function maskBeyond(count: number, size: number): Float32Array {
  return new Float32Array(size).fill(Number.NEGATIVE_INFINITY, count);
}
