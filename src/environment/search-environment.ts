/**
 * The Search-R1 episode (arXiv 2503.09516, Algorithm 1): the policy's turns are read by a codec; a search is
 * answered with passages, an answer ends the episode, anything else gets a message and uses up the turn. After
 * `maxSearches` turns comes one last turn in which a search is ignored. In the modes `direct` and `rag` the first turn
 * is that last turn; in `rag` the environment has searched with the question before it.
 *
 * One object plays one episode. It knows no tokens of the policy, no context length and no reward.
 */
import type { Question } from "../corpus/question.ts";
import { assert, RetrieverError } from "../errors.ts";
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Action, Codec } from "./action.ts";
import { findCodec } from "./codecs.ts";
import type { Condense } from "./condense-prompt.ts";
import type { EnvironmentOptions } from "./environment-options.ts";
import {
  type Observation,
  type ObservationFormat,
  observationFormat,
  renderObservation,
} from "./observation.ts";
import { openingText } from "./opening.ts";
import { prepareQuestion } from "./prompt.ts";
import type { StepResult } from "./step-result.ts";
import type { Turn } from "./turn.ts";

export type { StepResult };

export interface SearchEnvironmentInput {
  readonly question: Question;
  readonly retriever: Retriever;
  /** Without one, observation limits are estimated from the length of the text. */
  readonly tokenizer?: Tokenizer | undefined;
  readonly options: EnvironmentOptions;
  /** Default: the one that `options` names. */
  readonly codec?: Codec | undefined;
  /** Writes down what passages say, where `options.condense` asks for it. */
  readonly condense?: Condense | undefined;
}

export class SearchEnvironment {
  readonly codec: Codec;
  readonly #input: SearchEnvironmentInput;
  readonly #format: ObservationFormat;
  /** What the prompt shows in mode `rag`. */
  #shown: Pick<Turn, "passages" | "given" | "truncated"> = {};
  /** The queries that were searched, in lower case, and all that the policy wrote. */
  readonly #asked = new Set<string>();
  #written = "";
  /** Passages that were numbered so far. */
  #numbers = 0;
  #turnsTaken = 0;
  #isDone = false;

  constructor(input: SearchEnvironmentInput) {
    const { options, tokenizer } = input;
    this.#input = input;
    this.codec = input.codec ?? findCodec(options.codec);
    this.#format = observationFormat(options, tokenizer, this.codec);
  }

  /**
   * The text that opens the episode. Throws `ConfigError` when the chat template cannot be used, in mode `rag` also
   * `RetrieverError` and the signal's reason.
   */
  async prompt(signal?: AbortSignal): Promise<string> {
    const { question, options, tokenizer } = this.#input;
    const information =
      options.mode === "rag" || options.retrieveFirst ? await this.#information(signal) : "";
    const safe = this.#format.neutralize(prepareQuestion(question.text));
    return await openingText(options, { question: safe, information }, tokenizer);
  }

  /** The passages that the question itself finds. */
  async #information(signal?: AbortSignal): Promise<string> {
    const { question, retriever, options } = this.#input;
    const results = await retriever.retrieve([question.text], options.k, signal);
    const passages = checkResults(results, options.k);
    const { text, isTruncated } = renderObservation(passages, "", this.#numbered(passages.length));
    const name = options.mode === "rag" ? "passages" : "given";
    this.#shown = { [name]: passages, truncated: isTruncated };
    return text;
  }

  /**
   * Plays one turn of the policy, given as its text alone. Throws `RetrieverError` when the search fails, and the
   * signal's reason when aborted; the episode is over then.
   */
  async step(turnText: string, signal?: AbortSignal): Promise<StepResult> {
    assert(!this.#isDone, "an environment plays one episode");
    const isFinal = this.#searchesLeft() === 0;
    const action =
      isFinal && this.codec.parseFinal ? this.codec.parseFinal(turnText) : this.codec.parse(turnText);
    this.#written += turnText;
    this.#isDone = true;
    if (action.type === "answer") return this.#end("answer", action);
    if (isFinal) return this.#end("turnLimit", action);
    this.#turnsTaken++;
    const result = action.type === "search" ? await this.#search(action, signal) : this.#reject(action);
    this.#isDone = false;
    return result;
  }

  async #search(action: Extract<Action, { type: "search" }>, signal?: AbortSignal): Promise<StepResult> {
    const { retriever, options } = this.#input;
    const key = action.query.trim().toLowerCase();
    if (options.refuseRepeats && this.#asked.has(key))
      return this.#continue(this.codec.renderObservation(repeated) + this.#notice(), { action });
    this.#asked.add(key);
    const results = await retriever.retrieve([action.query], options.k, signal);
    const passages = checkResults(results, options.k);
    const { text, isTruncated } =
      options.condense === undefined
        ? renderObservation(passages, this.#notice(), this.#numbered(passages.length))
        : await this.#condensed(action.query, passages, signal);
    return this.#continue(text, { action, passages, truncated: isTruncated });
  }

  /** The format whose numbers go on where those of the search before ended, for codecs that number so. */
  #numbered(count: number): ObservationFormat {
    if (!this.codec.numbersThroughEpisode) return this.#format;
    this.#numbers += count;
    return { ...this.#format, firstNumber: this.#numbers - count + 1 };
  }

  /** What the policy writes down of the passages, instead of them. */
  async #condensed(
    query: string,
    passages: readonly ScoredPassage[],
    signal?: AbortSignal,
  ): Promise<Observation> {
    const { question, condense } = this.#input;
    assert(condense !== undefined, "an environment that condenses is given who does");
    const bare = {
      ...this.#format,
      codec: { ...this.codec, renderObservation: (text: string) => text.trim() },
    };
    const { text: documents, isTruncated } = renderObservation(passages, "", bare);
    const { neutralize } = this.#format;
    const found = {
      question: neutralize(prepareQuestion(question.text)),
      reasoning: this.#written,
      query,
      documents,
    };
    const text = neutralize(await condense(found, signal));
    return { text: this.codec.renderObservation(text) + this.#notice(), isTruncated };
  }

  #reject(action: Action): StepResult {
    return this.#continue(this.codec.invalidMessage + this.#notice(), { action });
  }

  #continue(observation: string, turn: Turn): StepResult {
    const isFirst = this.#turnsTaken === 1;
    const whole = isFirst && this.#shown.given !== undefined ? { given: this.#shown.given, ...turn } : turn;
    return { observation, isDone: false, turn: whole, isFinalTurnNext: this.#searchesLeft() === 0 };
  }

  #end(stopReason: "answer" | "turnLimit", action: Action): StepResult {
    const isLateSearch = stopReason === "turnLimit" && action.type === "search";
    const turn: Turn = {
      action: isLateSearch ? { type: "invalid", reason: "searchNotAllowed" } : action,
      ...(this.#turnsTaken === 0 && this.#shown),
    };
    return { isDone: true, stopReason, turn, isFinalTurnNext: false };
  }

  #searchesLeft(): number {
    const { mode, maxSearches } = this.#input.options;
    return mode === "search" ? maxSearches - this.#turnsTaken : 0;
  }

  #notice(): string {
    const left = this.#searchesLeft();
    const cue = left === 0 ? (this.codec.finalCue ?? "") : "";
    if (!this.#input.options.tellBudget || cue !== "") return cue;
    return left === 0 ? "No searches are left: answer now.\n" : `Searches left: ${left}.\n`;
  }
}

const repeated = "This query was searched before; its result stands above.";

/** The answer to the one query. */
function checkResults(results: readonly ScoredPassage[][], k: number): readonly ScoredPassage[] {
  const [passages] = results;
  if (results.length !== 1 || passages === undefined)
    throw new RetrieverError(
      `expected one list of passages for one query, got ${results.length}; check the retriever`,
    );
  if (passages.length > k)
    throw new RetrieverError(`expected at most ${k} passages, got ${passages.length}; check the retriever`);
  return passages;
}
