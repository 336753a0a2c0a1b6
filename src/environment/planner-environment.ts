/**
 * The episode of a search planner (AI-SearchPlanner, arXiv 2508.20368, section 3): each turn calls `search` with a set of
 * sub-queries or hands over to the generator with `call_answer_llm`; anything else gets a message and uses up the round.
 * Each sub-query finds k passages, and one that was found before in the same round is shown once.
 *
 * After `maxSearches` rounds the generator is called without being asked for. Sub-queries beyond `maxSubQueries` of the
 * episode are not searched; a call of which none is left gets an empty observation. The generator itself is none of this
 * object's business: it only says when its turn has come.
 */
import { assert, RetrieverError } from "../errors.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import type { Action, Codec } from "./action.ts";
import { findCodec } from "./codecs.ts";
import { type ObservationFormat, observationFormat, renderObservation } from "./observation.ts";
import { openingText } from "./opening.ts";
import { prepareQuestion } from "./prompt.ts";
import type { SearchEnvironmentInput } from "./search-environment.ts";
import type { StepResult } from "./step-result.ts";
import type { Turn } from "./turn.ts";

export class PlannerEnvironment {
  readonly codec: Codec;
  readonly #input: SearchEnvironmentInput;
  readonly #format: ObservationFormat;
  #rounds = 0;
  #subQueries = 0;
  #isDone = false;

  constructor(input: SearchEnvironmentInput) {
    const { options, tokenizer } = input;
    this.#input = input;
    this.codec = input.codec ?? findCodec(options.codec);
    this.#format = observationFormat(options, tokenizer, this.codec);
  }

  /** The text that opens the episode. Throws `ConfigError` when the chat template cannot be used. */
  async prompt(): Promise<string> {
    const { question, options, tokenizer } = this.#input;
    const safe = this.#format.neutralize(prepareQuestion(question.text));
    return await openingText(options, { question: safe, information: "" }, tokenizer);
  }

  /**
   * Plays one turn of the planner. Throws `RetrieverError` when a search fails, and the signal's reason when aborted; the
   * episode is over then.
   */
  async step(turnText: string, signal?: AbortSignal): Promise<StepResult> {
    assert(!this.#isDone, "an environment plays one episode");
    const action = this.codec.parse(turnText);
    this.#isDone = true;
    const isOver = (this.#roundsLeft() === 0 && action.type !== "callGenerator") || action.type === "answer";
    if (isOver) return this.#forced({ action: { type: "invalid", reason: "searchNotAllowed" } });
    if (action.type === "callGenerator")
      return {
        isDone: true,
        stopReason: "answer",
        handOver: "asked",
        turn: { action },
        isFinalTurnNext: false,
      };
    this.#rounds++;
    const { observation, turn } = await this.#play(action, signal);
    if (this.#roundsLeft() === 0) return this.#forced(turn, observation);
    this.#isDone = false;
    return { observation, isDone: false, turn, isFinalTurnNext: false };
  }

  async #play(
    action: Exclude<Action, { type: "answer" | "callGenerator" }>,
    signal?: AbortSignal,
  ): Promise<{ readonly observation: string; readonly turn: Turn }> {
    if (action.type === "invalid")
      return { observation: this.codec.invalidMessage + this.#notice(), turn: { action } };
    const asked = action.type === "search" ? [action.query] : action.queries;
    const queries = asked.slice(0, this.#subQueriesLeft());
    this.#subQueries += queries.length;
    const { passages, foundBy } = await this.#search(queries, signal);
    const { text, isTruncated } = renderObservation(passages, this.#notice(), this.#format);
    const turn = {
      action: { type: "searches", queries },
      passages,
      foundBy,
      truncated: isTruncated,
    } as const;
    return { observation: text, turn };
  }

  /** The passages of all queries, each once, those of the first query first. */
  async #search(
    queries: readonly string[],
    signal?: AbortSignal,
  ): Promise<{ readonly passages: readonly ScoredPassage[]; readonly foundBy: readonly number[] }> {
    if (queries.length === 0) return { passages: [], foundBy: [] };
    const { retriever, options } = this.#input;
    const results = await retriever.retrieve([...queries], options.k, signal);
    if (results.length !== queries.length || results.some(({ length }) => length > options.k))
      throw new RetrieverError(
        `expected at most ${options.k} passages for each of ${queries.length} queries, got lists of ${results.map(({ length }) => length).join(", ")}; check the retriever`,
      );
    const first = new Map<string, { found: ScoredPassage; query: number }>();
    for (const [query, list] of results.entries())
      for (const found of list)
        if (!first.has(found.passage.id)) first.set(found.passage.id, { found, query });
    const kept = [...first.values()];
    return { passages: kept.map(({ found }) => found), foundBy: kept.map(({ query }) => query) };
  }

  #forced(turn: Turn, observation?: string): StepResult {
    return {
      ...(observation !== undefined && { observation }),
      isDone: true,
      stopReason: "answer",
      handOver: "forced",
      turn,
      isFinalTurnNext: false,
    };
  }

  #roundsLeft(): number {
    return this.#input.options.maxSearches - this.#rounds;
  }

  #subQueriesLeft(): number {
    return this.#input.options.maxSubQueries - this.#subQueries;
  }

  #notice(): string {
    if (!this.#input.options.tellBudget) return "";
    return `Rounds left: ${this.#roundsLeft()}, sub-queries left: ${this.#subQueriesLeft()}.\n`;
  }
}
