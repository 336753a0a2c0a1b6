/**
 * A search engine that a language model plays (ZeroSearch, arXiv 2505.04588): it writes useful documents, or noisy ones
 * with a probability that rises over the training. Whether a query gets noise depends on the query, the seed and the
 * step alone; a query that was noisy once stays so while the noise rises. What the model cannot know it makes up: the
 * passages are training material, not sources.
 */
import { RetrieverError } from "../../errors.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import { excerpt } from "../../shared/http.ts";
import { random } from "../../shared/random.ts";
import { cachedRetriever } from "../recording/cached-retriever.ts";
import { answerDistinct } from "../remote/queries.ts";
import type { Retriever, ScoredPassage } from "../retriever.ts";
import { checkK } from "../retriever.ts";
import { noiseAt } from "./curriculum.ts";
import type { SimulatedRetrieverOptions } from "./simulated-options.ts";
import { fillTemplate, parseDocuments, reminder, type WrittenDocument } from "./templates.ts";

export interface Simulator {
  /** One text for each prompt. The same prompt should give the same text; whether it does is the model's matter. */
  readonly generate: (prompts: readonly string[], signal?: AbortSignal) => Promise<readonly string[]>;
  /** What the texts depend on, such as the name of the model; part of the identity. */
  readonly model: string;
  /** What the model is told beside the query, such as the question and its answer (as ZeroSearch does). */
  readonly hint?: (query: string) => string | undefined;
}

export interface SimulatedRetriever extends Retriever {
  /** Moves the curriculum to a step of the training. */
  setStep(step: number): void;
  /** The probability of noise at this step. */
  noise(): number;
}

/** A retriever over `simulator`, at step 0. Retrieving throws `RetrieverError` when a reply cannot be read. */
export function createSimulatedRetriever(
  options: SimulatedRetrieverOptions,
  simulator: Simulator,
): SimulatedRetriever {
  let step = 0;
  const noise = (): number => (options.noise === undefined ? 0 : noiseAt(step, options.noise));
  const isNoisy = (query: string): boolean => random(options.seed, "noise", query).next() < noise();
  // One cache for each kind, so that an answer does not outlive its step.
  const cached = (kind: boolean): Retriever =>
    cachedRetriever(engine(options, simulator, kind), { maxEntries: options.cacheEntries });
  const useful = cached(false);
  const noisy = cached(true);
  return {
    identity: useful.identity,
    setStep: (next) => {
      step = next;
    },
    noise,
    retrieve: async (queries, k, signal) => {
      checkK(k);
      signal?.throwIfAborted();
      const whole = await answerDistinct(
        queries,
        (query) => query.trim(),
        async (distinct) => {
          const kinds = distinct.map(isNoisy);
          const [good, bad] = await Promise.all([
            useful.retrieve(
              distinct.filter((_, i) => kinds[i] === false),
              options.documents,
              signal,
            ),
            noisy.retrieve(
              distinct.filter((_, i) => kinds[i] === true),
              options.documents,
              signal,
            ),
          ]);
          return kinds.map((kind) => (kind ? bad : good).shift() ?? []);
        },
      );
      return whole.map((answer) => answer.slice(0, k));
    },
  };
}

/** The engine of one kind; it always answers with all documents. */
function engine(options: SimulatedRetrieverOptions, simulator: Simulator, isNoisy: boolean): Retriever {
  const template = isNoisy ? options.noisyTemplate : options.usefulTemplate;
  const { documents: count, words } = options;
  const promptFor = (query: string): string =>
    fillTemplate(template, {
      query,
      count: String(count),
      words: String(words),
      hint: simulator.hint?.(query) ?? "",
    });
  return {
    identity: identityOf(options, simulator.model),
    retrieve: async (queries, _k, signal) => {
      if (queries.length === 0) return [];
      const written = await write(queries.map(promptFor), { options, simulator, signal });
      return written.map((documents, index) => passagesOf(documents, queries[index] as string, isNoisy));
    },
  };
}

interface Writing {
  readonly options: SimulatedRetrieverOptions;
  readonly simulator: Simulator;
  readonly signal: AbortSignal | undefined;
}

/** The documents for each prompt; only prompts whose reply could not be read are asked again. */
async function write(
  prompts: readonly string[],
  { options, simulator, signal }: Writing,
): Promise<WrittenDocument[][]> {
  const written = new Array<WrittenDocument[]>(prompts.length);
  let left = prompts.map((_, index) => index);
  let example = "";
  for (let attempt = 0; attempt <= options.retries && left.length > 0; attempt++) {
    signal?.throwIfAborted();
    const asked = left.map((index) => `${prompts[index]}${attempt === 0 ? "" : reminder}`);
    const replies = await simulator.generate(asked, signal);
    if (replies.length !== asked.length)
      throw new RetrieverError(
        `the simulating model: expected ${asked.length} texts, got ${replies.length}; check the generate function`,
      );
    left = left.filter((index, place) => {
      const reply = replies[place] as string;
      const documents = parseDocuments(reply, options.documents);
      written[index] = documents;
      if (documents.length === 0) example = reply;
      return documents.length === 0;
    });
  }
  if (left.length > 0)
    throw new RetrieverError(
      `the simulating model ${simulator.model}: expected documents "Doc 1: title", got ${excerpt(example)} ` +
        `after ${options.retries + 1} attempts (${left.length} of ${prompts.length} queries); use a stronger model or another template`,
    );
  return written;
}

function passagesOf(documents: readonly WrittenDocument[], query: string, isNoisy: boolean): ScoredPassage[] {
  const source = sha256(query).slice(0, 12);
  return documents.map(({ title, text }, rank) => ({
    passage: { id: `simulated:${source}:${isNoisy ? "noisy" : "useful"}:${rank + 1}`, title, text },
    score: 1 / (rank + 1),
  }));
}

function identityOf(options: SimulatedRetrieverOptions, model: string): Retriever["identity"] {
  const { documents, words, noise, seed } = options;
  const templates = sha256(canonicalJson([options.usefulTemplate, options.noisyTemplate])).slice(0, 16);
  const curriculum = Object.entries(noise ?? {}).map(([key, value]) => [`noise.${key}`, value]);
  const parameters = { model, documents, words, seed, templates, ...Object.fromEntries(curriculum) };
  return {
    method: "simulated",
    corpusHash: `simulated:${sha256(model).slice(0, 16)}`,
    indexHash: sha256(canonicalJson(parameters)),
    parameters,
  };
}
